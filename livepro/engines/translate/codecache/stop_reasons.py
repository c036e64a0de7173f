"""Why there is a breakpoint of livepro's at an address of a cache, and what must be known of it.

(Exits, the many, are in `Linker.exits`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


@dataclass(frozen=True, slots=True)
class ChunkStop:
    """The thread's chunk of records is full before instruction `index` of `block`, where that is recorded, or
    in the midst of one (None); the thread goes on at cache address `resume`."""

    block: Fragment | None
    resume: int
    index: int = 0


class RegionStop(NamedTuple):
    """A region may begin or end before the first instruction of `block`, at the program's address `pc`."""

    block: Fragment
    pc: int


Stop = MissStop | NativeStop | SupersededStop | PinnedStop | ChangedStop | BudgetStop | ChunkStop | RegionStop


def stops_of(
    block: Fragment, raises_trap: Callable[[bytes], bool], block_of: Callable[[int], Fragment]
) -> Iterator[tuple[int, Stop]]:
    """The stops in a copy, by address. `raises_trap` says whether an instruction raises one itself,
    `block_of` which block counts in a slot."""
    source, details, at = block.source, block.details, block.start
    for offset, index, behind in details.natives:
        encoding = source.code[source.offsets[index] : source.offsets[index + 1]]
        counted = offset >= block.counted
        yield at + offset, NativeStop(block, index, at + behind, counted, raises_trap(encoding))
    changed = None
    for offset, index in details.changes:
        counted = offset >= block.counted
        if changed is None or (changed.index, changed.counted) != (index, counted):
            changed = ChangedStop(block, index, counted)
        yield at + offset, changed
    if details.budget is not None:
        stop, resume = details.budget
        yield at + stop, BudgetStop(block, at + resume)
    if details.full is not None:
        stop, resume = details.full
        following = (index for index, offset in details.runs if offset > stop)
        yield at + stop, ChunkStop(block, at + resume, next(following, len(source.facts)))
    if details.cold is not None and details.cold.ask is not None:
        where = block.cold + details.cold.ask.stop
        yield where, BudgetStop(block, where + 1)
    for stop, resume, slot in details.more_budgets:
        yield at + stop, BudgetStop(block_of(slot), at + resume)
