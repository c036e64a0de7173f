"""Why there is a breakpoint of livepro's at an address of a cache, and what must be known of it.

(Exits, the many, are in `Linker.exits`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from livepro.engines.translate.codecache.fragment import Fragment


class MissStop:
    """The lookup table has no entry for the target of an indirect branch."""


@dataclass(frozen=True, slots=True)
class NativeStop:
    """Instruction `index` of `block` must be stepped at its own place; the thread goes on at cache address
    `resume` (0: elsewhere). `counted`: the block has been counted by then; `raises`: the instruction
    raises a trap itself."""

    block: Fragment
    index: int
    resume: int
    counted: bool
    raises: bool = False


class SupersededStop(NamedTuple):
    """The fragment is in force no longer: the thread goes on in the one of the program's address `pc`."""

    pc: int


@dataclass(frozen=True, slots=True)
class PinnedStop:
    """A thread has come back from a system call in a fragment that was flushed meanwhile: it is before
    instruction `index` of `block`, at the program's address `pc`, and would have gone on at cache address
    `resume`."""

    block: Fragment
    pc: int
    index: int
    resume: int
    counted: bool


@dataclass(frozen=True, slots=True)
class ChangedStop:
    """The program has changed the source of `block`; the thread is before instruction `index`."""

    block: Fragment
    index: int
    counted: bool


class BudgetStop(NamedTuple):
    """An interval or a share of a region ends in `block`; the thread goes on at cache address `resume`."""

    block: Fragment
    resume: int


class ChunkStop(NamedTuple):
    """The thread's chunk of records is full before `block`; the thread goes on at cache address `resume`."""

    block: Fragment
    resume: int


class RegionStop(NamedTuple):
    """A region may begin or end before the first instruction of `block`, at the program's address `pc`."""

    block: Fragment
    pc: int


Stop = MissStop | NativeStop | SupersededStop | PinnedStop | ChangedStop | BudgetStop | ChunkStop | RegionStop
