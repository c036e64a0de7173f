"""Exact basic block vectors of one thread that runs from a code cache.

The thread's budget counts down by a block's length where the block is counted;
when it falls below zero the thread stops in that block, and the block is split
between two intervals by arithmetic. Position in the instruction stream is at
all times `boundary - budget`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import CutRule, ThreadTally
from livepro.engines.translate.counting import sparse
from livepro.engines.translate.counting.budget import ENDLESS, INTERVAL, Budget
from livepro.engines.translate.counting.sparse import Sparse
from livepro.engines.window import Position
from livepro.model import Interval


class Lengths(Protocol):
    """Knows how many instructions each slot's block has."""

    def lengths(self) -> npt.NDArray[np.int64]:
        """One length per slot (int64)."""


class Counters(Protocol):
    """What a thread's counters say."""

    def of(self, slot: int) -> int:
        """Executions of one block."""

    def news(self) -> list[Sparse]:
        """Executions of blocks since this was asked last."""


class _Base(NamedTuple):
    """Where an interval began, at `position`: what had been counted apart from counters then, the
    instructions that belong to it of the block the boundary fell into, and what counters have counted since
    (as far as asked)."""

    position: int
    entries: dict[int, int]
    partial: dict[tuple[int, int], int]
    carried: dict[int, int]
    news: list[Sparse]


class _Cut(NamedTuple):
    """A boundary in the block last counted, in case the thread leaves that block before it gets there."""

    base: _Base
    boundary: int
    slot: int
    executions: int


class IntervalClock:
    """Cuts one thread's instruction stream into intervals."""

    def __init__(
        self,
        counters: Counters,
        budget: Budget,
        tally: ThreadTally,
        space: Lengths,
        cut: CutRule,
    ) -> None:
        self._counters = counters
        self._budget = budget
        self._tally = tally
        self._space = space
        self._cut = cut
        self._boundary = cut(0)
        self._budget.set(INTERVAL, self._boundary)
        self._counters.news()
        self._base = self._now({}, 0)
        self._cuts: list[_Cut] = []
        self._frozen: dict[int, int] | None = None
        self._left = 0

    # -- see `livepro.engines.window.Vectors`

    def restart(self, position: Position) -> None:
        self._tally.intervals.clear()
        self._boundary = self._cut(0)
        if self._frozen is None:
            self._go_on(position, {}, self._boundary)
        else:
            self._frozen, self._left = {}, self._boundary

    def freeze(self, position: Position) -> None:
        if self._frozen is not None:
            return
        ahead = position.charged - position.executed - position.owed
        reached = self._boundary - self._budget.left(INTERVAL) - ahead
        self.ran_out(position.row)  # the thread may have yet to say so itself
        self._take_back(position.row, reached)
        slots, counts = self._vector(position.row, position.executed - position.charged)
        self._frozen = dict(zip(slots.tolist(), counts.tolist(), strict=True))
        self._left = self._budget.left(INTERVAL) + ahead
        self._budget.set(INTERVAL, ENDLESS)
        self._cuts.clear()

    def thaw(self, position: Position) -> None:
        frozen, self._frozen = self._frozen, None
        if frozen is not None:
            self._go_on(position, frozen, self._left)

    def _go_on(self, position: Position, done: dict[int, int], left: int) -> None:
        """Count on from a position, with so many instructions in the interval already,
        by slot, and so many left in it."""
        ahead = position.charged - position.executed
        carried = dict(done)
        carried[position.row] = carried.get(position.row, 0) + ahead
        self._cuts.clear()
        self._counters.news()
        self._base = self._now(carried, self._boundary - left - sum(done.values()))
        self._budget.set(INTERVAL, left - ahead + position.owed)
        self.ran_out(position.row)

    def resynchronise(self) -> None:
        """Set the budget anew from what has been counted: it was written while the thread ran."""
        if self._frozen is None:
            into = int(self._vector()[1].sum())
            self._budget.set(INTERVAL, self._boundary - self._base.position - into)
        else:
            self._budget.set(INTERVAL, ENDLESS)

    def _now(self, carried: dict[int, int], position: int) -> _Base:
        return _Base(position, dict(self._tally.entries), dict(self._tally.partial), carried, [])

    def _vector(self, slot: int = 0, besides: int = 0) -> Sparse:
        """Instructions executed in each block since the interval began, and so many `besides` in the one of
        `slot`."""
        lengths, base = self._space.lengths(), self._base
        base.news.extend(self._counters.news())
        more = defaultdict(int, base.carried)
        more[slot] += besides
        for slot, count in self._tally.entries.items():
            if count != base.entries.get(slot, 0):
                more[slot] += int(lengths[slot]) * (count - base.entries.get(slot, 0))
        for (slot, length), count in self._tally.partial.items():
            if count != base.partial.get((slot, length), 0):
                more[slot] += length * (count - base.partial.get((slot, length), 0))
        ran = [(slots, times * lengths[slots]) for slots, times in base.news]
        return sparse.total([*ran, sparse.from_mapping(more)])

    def ran_out(self, slot: int) -> None:
        """The budget may be spent: then the boundary lies in the block last counted, of `slot`."""
        if not self._cuts and not self._budget.spent(INTERVAL):
            return
        executions = self._counters.of(slot)
        if self._cuts and (self._cuts[-1].slot, self._cuts[-1].executions) != (slot, executions):
            self._cuts.clear()
        while self._budget.spent(INTERVAL):
            behind = -self._budget.left(INTERVAL)
            self._emit(self._vector(slot, -behind))
            self._cuts.append(_Cut(self._base, self._boundary, slot, executions))
            self._base = self._now({slot: behind}, self._boundary)
            following = self._cut(self._boundary)
            self._budget.set(INTERVAL, self._budget.left(INTERVAL) + following - self._boundary)
            self._boundary = following

    def adjust(self, slot: int, executed: int, charged: int) -> None:
        """The thread left the block of `slot` after `executed` instructions, `charged`
        having been taken from the budget for it. To be told after the tally is."""
        self._budget.give(charged - executed)
        self.ran_out(slot)
        if self._cuts:  # what is left takes long to find out
            self._take_back(slot, self._boundary - self._budget.left(INTERVAL))

    def _take_back(self, slot: int, position: int) -> None:
        """Undo the cuts in the block of `slot` behind a position that its last execution has not passed."""
        executions = self._counters.of(slot)
        ahead = self._boundary - position - self._budget.left(INTERVAL)
        while self._cuts and (self._cuts[-1].slot, self._cuts[-1].executions) == (slot, executions):
            last = self._cuts[-1]
            if position >= last.boundary:
                break
            # It has not got as far as the boundary after all.
            del self._cuts[-1]
            self._tally.intervals.pop()
            last.base.news.extend(self._base.news)
            self._base = last.base
            self._boundary = last.boundary
            self._budget.set(INTERVAL, last.boundary - position - ahead)

    def finish(self) -> None:
        """Close the last, partial interval."""
        self._emit(
            self._vector() if self._frozen is None else sparse.total([sparse.from_mapping(self._frozen)])
        )

    def _emit(self, vector: Sparse) -> None:
        rows, counts = vector
        if len(rows):
            self._tally.intervals.append(Interval(int(counts.sum()), rows, counts.astype(np.uint64)))
