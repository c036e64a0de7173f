"""What an emitter makes of one basic block: the fragment's bytes, and where everything in them is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from livepro.engines.translate.translator.source import SourceBlock


class Check(Enum):
    """When a block's source bytes must be compared with those copied."""

    NEVER = 0
    ENTRY = 1
    WRITES = 2


class Countdown(IntEnum):
    """Who tells a thread that an interval or its share of a region ends (`budget`)."""

    NONE = 0
    BUDGET = 1
    """Each block takes its length from the budget when it is counted, and stops if that makes it negative."""
    ALLOWANCES = 2
    """A block takes enough for many executions at once, out of the way (`allowances`)."""


class Field(IntEnum):
    """What an embedded field of a copy depends on, so that the copy can be used elsewhere."""

    OUT = 0
    """32 bits, relative to their end: an address of the program's."""
    CELL = 1
    """32 bits: the offset of a counter in the thread's area."""
    SLOT = 2
    """32 bits: a counter slot."""
    DATA = 3
    """32 bits: an address in the data window."""
    ADDRESS = 4
    """64 bits: an address of the program's."""
    NEGATED = 5
    """64 bits: minus an address of the program's."""
    FIXED = 6
    """32 bits: an address of the program's. It fits only programs below 2 GiB, which never move."""
    INSIDE = 7
    """32 bits: an address in the cache, which is below 2 GiB."""
    RECORD = 8
    """32 bits: the number of a block in the event stream."""
    PAGE = 9
    """32 bits: the number of a page of the program's, modulo 2**32 (`stream.filtering.PAGE_SHIFT`)."""


HERE = 4
"""The distance from a branch's field to right behind the branch."""


class Landing(NamedTuple):
    """What the lookup table leads to for one target: the bytes, the offset of the displacement
    that leads elsewhere, and of the field that holds the target (`Field.NEGATED`)."""

    code: bytes
    otherwise: int
    target: int


class Ask(NamedTuple):
    """The slow path of a countdown."""

    begin: int
    """The offset in the fragment from which on, up to where the path leads back to, a count is in a register
    or in flags."""
    stop: int
    """The offset in the path of the stop where nothing is left at all."""


class Cold(NamedTuple):
    """The slow paths of a fragment, which lie elsewhere."""

    code: bytes
    enters: tuple[tuple[int, int], ...]
    """The offset in the fragment of 4 bytes that lead to a path, and where the path begins."""
    backs: tuple[tuple[int, int], ...]
    """The offset in a path of the 4 bytes that lead back, and the offset in the fragment."""
    fields: tuple[tuple[Field, int], ...]
    """As `Emitted.fields`, for `code`."""
    ask: Ask | None = None
    """The countdown's, if the path is that."""
    writes: tuple[tuple[int, int], ...] = ()
    """Where paths begin that write into the event stream themselves, and the offset from which on they have
    done so."""

    def back(self, offset: int) -> int:
        """Where in the fragment the path leads back to that has this offset."""
        return next((to for field, to in self.backs if offset < field + HERE), self.backs[-1][1])


class Emitted:
    """The fragment of one basic block. Offsets are bytes from its start; an index is that of one of the
    block's instructions; a displacement is 32 bits that count from right behind them."""

    # Class attributes are the defaults: most fragments have none of the rare things.

    exits: tuple[tuple[int, int], ...] = ()
    """Where the fragment is left: the offset of the displacement, the program's address that is wanted."""
    falls: int | None = None
    """The program's address to go on at when the fragment's end is reached (None: never)."""
    returns_to: int | None = None
    """The return address that a call has pushed."""
    urgent: tuple[int, ...] = ()
    """The program's addresses that must be translated before the fragment runs: it may go on there with an
    exclusive monitor set, which a stop would clear."""

    natives: tuple[tuple[int, int, int], ...] = ()
    """Stops at which the tracer has an instruction executed at its own place: the stop's offset, the
    instruction's index, the offset to go on at."""
    behind_syscall: Mapping[int, int] = MappingProxyType({})
    """The offset behind each system call: the index of the instruction that follows."""
    entered: Mapping[int, int] = MappingProxyType({})
    """The offset of each system call: its index. There the kernel puts the program counter back on a call
    that a signal has interrupted."""
    reps: Mapping[int, int] = MappingProxyType({})
    """The offset of each rep instruction: its index."""
    borrowed: Mapping[int, int] = MappingProxyType({})
    """The offsets of parts of an instruction that may fault while registers are borrowed: which part, in the
    instruction set's own terms."""
    dirty: tuple[int, int] = (0, 0)
    """The offsets from which on and before which a register that the block overwrites holds something else:
    no boundary in between is exact."""
    retreat: tuple[int, int] = (0, 0)
    """The offsets from which on (its registers are saved) and before which the fragment prepares a return
    from a signal handler, its last instruction, which has not begun there."""

    changes: tuple[tuple[int, int], ...] = ()
    """Stops where the block's source has changed: the offset, the index of the first changed instruction."""
    skip: int | None = None
    """The offset of the displacement of a branch at the fragment's start, which leads to the comparison
    of the source: right behind it, or `aside`."""
    aside: Emitted | None = None
    """That comparison, where it lies elsewhere. Its last 4 bytes are to lead back behind the branch."""

    resumes: Mapping[int, int] = MappingProxyType({})
    """The offsets at which to go on before instructions (by index) in front of which something is emitted: a
    comparison of the source, what records."""

    budget: tuple[int, int] | None = None
    """The stop where the thread's countdown has run out: its offset, the offset to go on at."""
    more_budgets: tuple[tuple[int, int, int], ...] = ()
    """The same for blocks that this one counts before itself (`owed`), with the slot of each."""
    cold: Cold | None = None
    """The slow path of the countdown, or those of what filters the event stream."""
    recorded: int = 0
    """The offset from which on the block has a record in the event stream."""
    early: Mapping[int, int] = MappingProxyType({})
    """The offsets from which on the addresses of instructions (by index) are recorded right before them:
    registers are the program's own there, too."""
    full: tuple[int, int] | None = None
    """The stop where the thread's chunk of records is full: its offset, the offset to go on at."""

    within: tuple[tuple[int, int], ...] | None = None
    """If the fragment ends within an exclusive sequence (None: it does not), the blocks executed by then
    and not counted yet: slot, length in instructions."""
    owed: tuple[tuple[int, int], ...] = ()
    """The same where the fragment begins: it counts those before itself."""

    literals: tuple[tuple[int, int], ...] = ()
    """Constants to be placed near: the offset of the displacement, the 8-byte value."""
    live: int = 0
    """The flags that the block's successors may read, as far as that was asked."""

    code: bytearray
    """The fragment's bytes."""
    runs: list[tuple[int, int]]
    """(index, offset): from that instruction on, up to the next run, the fragment has the program's own
    bytes, which begin at that offset."""
    fields: list[tuple[Field, int]]
    """All else that depends on where the program, its fragments and livepro's memory are: kind, offset."""
    counted: int
    """The offset behind which the block has been counted."""
    tallied: int
    """The offset in the counting sequence from which on the counter says so."""
    charged: int
    """The offset from which on the thread's countdown says so, if that is further on than one instruction."""

    def __init__(self) -> None:
        self.code = bytearray()
        self.runs = []
        self.fields = []
        self.counted = 0
        self.tallied = 0
        self.charged = 0

    def marks(self, block: SourceBlock) -> list[int]:
        """The offset at which each instruction is about to be executed, everything being
        the program's own there, and last the end of the copy."""
        offsets = block.offsets
        out: list[int] = []
        for (first, at), (following, _) in pairwise([*self.runs, (len(offsets), 0)]):
            out += [at + offsets[i] - offsets[first] for i in range(first, following)]
        if len(out) == len(offsets):
            out[-1] = len(self.code)
        return out
