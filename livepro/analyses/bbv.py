"""Basic block vectors: where intervals are cut, and what each holds.

Two dialects. `exact` (the default) cuts after every `interval_size`
instructions precisely and keeps the last interval, however short. `exp-bbv`
has the habits of Valgrind's tool of that name (exp-bbv/bbv_main.c,
`handle_overflow`): it compares *after* counting an instruction, strictly, and
subtracts the interval size, so the first interval has one instruction more
(1001, then 1000, 1000, ...), and what follows the last cut is dropped.

One of its habits is left out: exp-bbv counts a rep-prefixed instruction
together with the instruction that follows, so where instruction `k * size + 1`
is such a one, it cuts one instruction later than this module, that once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.analyses.totals import Totals, thread_totals
from livepro.errors import LiveproError
from livepro.model import BlockTable, ThreadCounts


class Dialect(StrEnum):
    """Whose habits the vectors follow."""

    EXACT = "exact"
    EXP_BBV = "exp-bbv"


@dataclass(frozen=True, slots=True)
class CutRule:
    """Where a thread's intervals end. Positions count the thread's instructions from 0.

    Raises LiveproError for an interval size below 1 or an unknown dialect.
    """

    interval_size: int
    dialect: Dialect = Dialect.EXACT

    def __post_init__(self) -> None:
        if self.interval_size < 1:
            raise LiveproError(
                f"The interval size {self.interval_size} is too small.",
                "Intervals have at least 1 instruction; the usual size is 100000000.",
            )
        if self.dialect not in set(Dialect):
            raise LiveproError(
                f"There is no basic block vector dialect '{self.dialect}'.",
                f"The dialects are {' and '.join(Dialect)}.",
            )

    def next_cut(self, position: int) -> int:
        """The first cut behind `position`: the interval under way ends after that many instructions.

        An engine that has executed `position` instructions of a thread and
        just cut (or just begun, at 0) may execute ``next_cut(position) -
        position`` more in this interval.
        """
        return next_cut(self.dialect, self.interval_size, position)


def next_cut(dialect: str, interval_size: int, position: int) -> int:
    """The first cut behind `position` (instructions of the thread so far, at least 0).

    Multiples of `interval_size` in the exact dialect, and one more than these
    (but never 1) in the exp-bbv dialect.
    """
    if dialect == Dialect.EXACT:
        return (position // interval_size + 1) * interval_size
    return max(1, (position - 1) // interval_size + 1) * interval_size + 1


class Vector(NamedTuple):
    """One interval: instructions executed in each block that ran.

    `ids` (int64) are block ids, table row + 1, in ascending order of block
    *address* (as exp-bbv orders them); `counts` (uint64) has the same shape.
    """

    ids: npt.NDArray[np.int64]
    counts: npt.NDArray[np.uint64]


class Summary(NamedTuple):
    """What stands behind a thread's vectors in its file.

    `intervals` is the number of vectors in the exact dialect. exp-bbv prints
    instructions divided by interval size, which is one more than it wrote
    where the division leaves no rest.
    """

    intervals: int
    interval_size: int
    instructions: int
    rep_iterations: int
    rep_instructions: int
    fldcw: int


def vectors(table: BlockTable, thread: ThreadCounts, rule: CutRule | None = None) -> Iterator[Vector]:
    """The thread's vectors, one at a time, in order.

    With a `rule` of the exp-bbv dialect, an unfinished last interval is left
    out; otherwise every interval gives a vector.
    """
    # The place of each row when blocks are ordered by address; same address (JIT code): by id.
    by_address = np.argsort(table.address, kind="stable")
    place = np.empty(len(table), np.int64)
    place[by_address] = np.arange(len(table))
    counts = np.empty(len(table), np.uint64)  # by place
    position = 0
    for interval in thread.intervals:
        start, position = position, position + interval.instructions
        if rule is not None and rule.dialect == Dialect.EXP_BBV and position < rule.next_cut(start):
            continue
        places = place[interval.rows]
        counts[places] = interval.counts
        places.sort()
        yield Vector(by_address[places] + 1, counts[places])


def summary(table: BlockTable, thread: ThreadCounts, rule: CutRule, totals: Totals | None = None) -> Summary:
    """The figures below the vectors; `totals` of the thread if the caller has them already."""
    totals = totals or thread_totals(table, thread)
    if rule.dialect == Dialect.EXP_BBV:
        intervals = totals.instructions // rule.interval_size
    else:
        intervals = len(thread.intervals)
    return Summary(
        intervals,
        rule.interval_size,
        totals.instructions,
        totals.rep_iterations,
        totals.rep_instructions,
        totals.fldcw,
    )
