"""A block copy, and where everything in it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from livepro.engines.translate.source import SourceBlock


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


HERE = 4
"""The distance from a branch's field to right behind the branch."""


class Landing(NamedTuple):
    """What the lookup table leads to for one target: the bytes, the offset of the displacement
    that leads elsewhere, and of the field that holds the target (`Field.NEGATED`)."""

    code: bytes
    otherwise: int
    target: int


class Cold(NamedTuple):
    """What is out of the way of a copy, for a block that has no allowance left: `code`, whose last 4
    bytes lead back to the offset `back` of the copy. `enter` is the offset there of the 4 bytes that lead
    to it; from the offset `begin` on, up to `back`, what is counted is in a register or in flags. `stop` is
    its own offset of the int3 where nothing is left; `fields` are as in `Emitted`."""

    code: bytes
    begin: int
    enter: int
    back: int
    stop: int
    fields: tuple[tuple[Field, int], ...]


class Emitted:
    """A block copy.

    `runs` are (i, offset): from instruction i on, up to the next run, the copy
    is verbatim and begins there. `counted` is the offset behind which the
    block has been counted, `tallied` the one in that sequence from
    which on its counter says so, `charged` the one from which on its thread's budget does,
    if that is further on than an instruction. `exits` are (offset of a 32-bit displacement that
    ends there + 4, target address); `natives` (offset of an int3, instruction
    index, offset to go on at); `literals` (offset of a displacement, 8-byte
    value to be placed); `behind_syscall` offset -> index of the instruction
    behind; `entered` offset of a system call -> its index, where the kernel puts the pc back
    on a call that a signal interrupts; `reps` offset of a rep instruction -> index; `borrowed`
    offset of a part of an instruction that may fault while registers are borrowed -> which, in
    the instruction set's own terms; `changes`
    (offset of an int3, index of the first instruction whose source has
    changed); `skip` the offset of the field of a branch at its start, which leads to the comparison of
    its source, right behind or, if there is that, `aside`: code of its own, whose last 4 bytes are
    to lead back behind the branch; `retreat` the offsets from which on and
    before which the copy is preparing a return from a signal handler, its last instruction, which has not
    begun; `budget` the offset of an int3 for an interval that has run out,
    with the offset to go on at; `cold` what is out of the way; `falls` the address to go on at when the
    copy's end is reached (None: never reached); `returns_to` the return
    address that a call pushed; `live` the flags that its successors may read, as
    far as that was asked; `fields` (kind, offset) all that depends on where
    the program, its copy and livepro's memory are, besides the former; `urgent` addresses that
    must be translated before the copy runs, as it may go on there with an exclusive monitor
    set that a stop would clear; `within` (None: no) that the copy ends in an exclusive
    sequence, and the blocks then executed but not counted yet, as (slot, length); `owed` the
    like when it begins, which it counts before itself, with `more_budgets` (stop, resume,
    slot); `dirty` the offsets (from, to) between which a register that is overwritten there
    holds something else, so that no boundary is exact; `recorded` the offset from which on the block has a
    record, `full` that of an int3 where the chunk of records is full, with the offset to go on at.
    """

    # Class attributes are the defaults: most copies have none of the rare things.
    exits: tuple[tuple[int, int], ...] = ()
    natives: tuple[tuple[int, int, int], ...] = ()
    literals: tuple[tuple[int, int], ...] = ()
    changes: tuple[tuple[int, int], ...] = ()
    behind_syscall: Mapping[int, int] = MappingProxyType({})
    entered: Mapping[int, int] = MappingProxyType({})
    reps: Mapping[int, int] = MappingProxyType({})
    borrowed: Mapping[int, int] = MappingProxyType({})
    budget: tuple[int, int] | None = None
    cold: Cold | None = None
    skip: int | None = None
    aside: Emitted | None = None
    retreat: tuple[int, int] = (0, 0)
    falls: int | None = None
    returns_to: int | None = None
    live: int = 0
    urgent: tuple[int, ...] = ()
    within: tuple[tuple[int, int], ...] | None = None
    owed: tuple[tuple[int, int], ...] = ()
    more_budgets: tuple[tuple[int, int, int], ...] = ()
    dirty: tuple[int, int] = (0, 0)
    recorded: int = 0
    full: tuple[int, int] | None = None

    def __init__(self) -> None:
        self.code = bytearray()
        self.runs: list[tuple[int, int]] = []
        self.fields: list[tuple[Field, int]] = []
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
