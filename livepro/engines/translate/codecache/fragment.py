"""A fragment: one translated block in the cache, and which place of the program its addresses are."""

from __future__ import annotations

from dataclasses import dataclass

from livepro.engines.translate.translator.emitted import HERE, Emitted
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.window import Position


class Fragment:
    """A translated block: its source, its slot, and where its copy is in the target; `own` is the slot
    of the copy's counter, another one for a further copy (`unrolled`), `compares` the distance from the
    field at its start (`Emitted.skip`) to the comparison.

    For the positions see `Emitted`.
    """

    __slots__ = ("_marks", "cold", "compares", "counted", "details", "own", "size", "slot", "source", "start")

    def __init__(
        self, source: SourceBlock, slot: int, start: int, details: Emitted, cold: int = 0, own: int = -1
    ) -> None:
        self.source = source
        self.slot = slot
        self.own = slot if own < 0 else own
        self.start = start
        self.size = len(details.code)
        self.counted = details.counted
        self.details = details
        self.cold = cold
        self.compares = HERE
        self._marks: list[int] | None = None

    def position(self, executed: int, *, counted: bool) -> Position:
        """The position of a thread that has executed so many of its instructions."""
        length = len(self.source.facts)
        return Position(self.slot, executed, length if counted else 0, length)

    def charge(self, pc: int) -> tuple[bool, bool]:
        """Whether a thread that is at `pc` has been counted in this block, and whether its length has
        then been taken from the budget. (For one that is not `counting`.)"""
        details, cold = self.details, self.details.cold
        within = pc - self.start
        if cold is None or cold.ask is None:
            if cold is not None and self.is_cold(pc):
                within = cold.back(pc - self.cold)
            return within >= details.tallied, within >= max(details.tallied + 1, details.charged)
        return within >= details.tallied or self.is_cold(pc), True

    def is_cold(self, pc: int) -> bool:
        """Whether `pc` is in what is out of the copy's way."""
        cold = self.details.cold
        return cold is not None and 0 <= pc - self.cold < len(cold.code)

    def counting(self, pc: int) -> bool:
        """Whether the thread at `pc` is about to write a counter, or to go where that is done, by what it
        has seen before: nobody may change the counter now."""
        cold = self.details.cold
        if cold is None or cold.ask is None:
            return False
        return self.is_cold(pc) or cold.ask.begin <= pc - self.start < cold.backs[0][1]

    def resume(self, index: int) -> int:
        """The offset at which a thread goes on that was led around the copy as far as instruction `index`."""
        return self.details.resumes.get(index, self.marks[index])

    def index_at(self, offset: int) -> int | None:
        """The instruction that a thread at an offset is about to execute, registers being the program's own
        there; None elsewhere."""
        if offset in self.marks:
            return self.marks.index(offset)
        return next((index for index, at in self.details.early.items() if at == offset), None)

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
    the block has been counted; `entered` that the instruction is a system call which a signal
    has interrupted: the kernel has put the pc back on it."""

    block: Fragment
    index: int
    exact: bool
    counted: bool
    behind_syscall: bool
    at_rep: bool
    entered: bool = False

    @property
    def executed(self) -> int:
        """How many of the block's instructions have been executed."""
        return self.index + self.entered

    @property
    def pc(self) -> int:
        """The program's address."""
        return self.block.source.pc + self.block.source.offsets[self.index]
