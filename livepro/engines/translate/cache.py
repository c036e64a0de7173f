"""What is in a code cache: block copies, stops, and which place of the program each address is."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.emitted import Emitted
from livepro.engines.translate.memory import SharedFile
from livepro.engines.translate.source import SourceBlock


class Block:
    """A translated block: its source, counter slot, and where its copy is in the target.

    For the positions see `Emitted`.
    """

    __slots__ = ("_marks", "counted", "details", "size", "slot", "source", "start")

    def __init__(self, source: SourceBlock, slot: int, start: int, details: Emitted) -> None:
        self.source = source
        self.slot = slot
        self.start = start
        self.size = len(details.code)
        self.counted = details.counted
        self.details = details
        self._marks: list[int] | None = None

    @property
    def marks(self) -> list[int]:
        """See `Emitted.marks`; worked out when a signal or an exit asks for it."""
        if self._marks is None:
            self._marks = self.details.marks(self.source)
        return self._marks


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cache address is in the program: about to execute instruction `index`
    of `block`. `exact` says that registers are the program's own there (but for
    the count register of a system call, see `behind_syscall`); `counted` whether
    the block has been counted."""

    block: Block
    index: int
    exact: bool
    counted: bool
    behind_syscall: bool
    at_rep: bool

    @property
    def pc(self) -> int:
        """The program's address."""
        return self.block.source.pc + self.block.source.offsets[self.index]


@dataclass(frozen=True, slots=True)
class Stop:
    """Why an int3 in a cache stops: `kind` is one of miss, native, budget,
    changed, dropped. (Exits, the many, are in `CodeSpace.exits`.)"""

    kind: str
    block: Block | None = None
    pc: int = 0
    index: int = 0
    resume: int = 0
    counted: bool = False
    raises: bool = False


class Cache:
    """One code cache: copies grow from its start, stubs and literals from its middle."""

    def __init__(self, index: int, file: SharedFile) -> None:
        base = file.base
        self.index = index
        self.base = base
        self.end = base + layout.CACHE_SIZE
        self.file = file
        self.map: Any = file.map
        self.hot = base + 16
        self.cold = base + layout.CACHE_SIZE // 2
        self.hot_end = self.cold - (1 << 16)
        self.cold_end = base + layout.CACHE_SIZE - (1 << 16)
        self.starts: list[int] = []
        self.blocks: list[Block] = []

    def locate(self, address: int) -> Place | None:
        """Where an address of the cache is in the program, None for one that is no copy's."""
        at = bisect_right(self.starts, address) - 1
        if at < 0:
            return None
        block = self.blocks[at]
        within = address - block.start
        if within >= block.size:
            return None
        counted = within >= block.counted
        details = block.details
        behind = details.behind_syscall.get(within)
        if behind is not None:
            return Place(block, behind, True, counted, True, False)
        rep = details.reps.get(within)
        if rep is not None:
            return Place(block, rep, True, counted, False, True)
        marks = block.marks
        index = bisect_right(marks, within) - 1
        if index < 0:
            return Place(block, 0, within == 0, counted, False, False)
        exact = marks[index] == within
        # Several marks fall together only where nothing was emitted in between.
        while index and marks[index - 1] == within:
            index -= 1
        return Place(block, min(index, len(block.source.facts) - 1), exact, counted, False, False)
