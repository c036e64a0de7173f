"""Exact basic block vectors of one thread that runs from a code cache.

The thread's budget counts down by a block's length where the block is counted;
when it falls below zero the thread stops in that block, and the block is split
between two intervals by arithmetic. Position in the instruction stream is at
all times `boundary - budget`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import CutRule, ThreadTally
from livepro.engines.translate.budget import ENDLESS, INTERVAL, Budget
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

    def all(self, size: int = -1) -> npt.NDArray[np.int64]:
        """Executions of each block (int64, by slot; of the first `size` slots, or all)."""


class _Base(NamedTuple):
    """What had been counted when an interval began at `position`, and the instructions that
    belong to it of the block the boundary fell into."""

    position: int
    counters: npt.NDArray[np.int64]
    entries: dict[int, int]
    partial: dict[tuple[int, int], int]
    carried: dict[int, int]


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
        vector = self._vector()
        if position.executed or position.charged:
            vector[position.row] += position.executed - position.charged
        slots = np.flatnonzero(vector)
        self._frozen = dict(zip(slots.tolist(), vector[slots].tolist(), strict=True))
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
        self._base = self._now(carried, self._boundary - left - sum(done.values()))
        self._budget.set(INTERVAL, left - ahead + position.owed)
        self.ran_out(position.row)

    def resynchronise(self) -> None:
        """Set the budget anew from what has been counted: it was written while the thread ran."""
        if self._frozen is None:
            into = int(self._vector().sum())
            self._budget.set(INTERVAL, self._boundary - self._base.position - into)
        else:
            self._budget.set(INTERVAL, ENDLESS)

    def _now(
        self, carried: dict[int, int], position: int, counters: npt.NDArray[np.int64] | None = None
    ) -> _Base:
        return _Base(
            position,
            self._counters.all(len(self._space.lengths())) if counters is None else counters,
            dict(self._tally.entries),
            dict(self._tally.partial),
            carried,
        )

    def _vector(self, counters: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int64]:
        """Instructions executed in each block since the interval began (int64, per slot), by what
        the counters say now, or said."""
        lengths = self._space.lengths()
        base = self._base
        entries = self._counters.all(len(lengths)) if counters is None else counters.copy()
        entries[: len(base.counters)] -= base.counters
        for slot, count in self._tally.entries.items():
            entries[slot] += count - base.entries.get(slot, 0)
        vector = np.multiply(entries, lengths, out=entries)
        for (slot, length), times in self._tally.partial.items():
            vector[slot] += length * (times - base.partial.get((slot, length), 0))
        for slot, count in base.carried.items():
            vector[slot] += count
        return vector

    def ran_out(self, slot: int) -> None:
        """The budget may be spent: then the boundary lies in the block last counted, of `slot`."""
        if not self._cuts and not self._budget.spent(INTERVAL):
            return
        executions = self._counters.of(slot)
        if self._cuts and (self._cuts[-1].slot, self._cuts[-1].executions) != (slot, executions):
            self._cuts.clear()
        while self._budget.spent(INTERVAL):
            behind = -self._budget.left(INTERVAL)
            counters = self._counters.all(len(self._space.lengths()))
            vector = self._vector(counters)
            vector[slot] -= behind
            self._emit(vector)
            self._cuts.append(_Cut(self._base, self._boundary, slot, executions))
            self._base = self._now({slot: behind}, self._boundary, counters)
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
            self._base = last.base
            self._boundary = last.boundary
            self._budget.set(INTERVAL, last.boundary - position - ahead)

    def finish(self) -> None:
        """Close the last, partial interval."""
        vector = self._vector()
        if self._frozen is not None:
            vector[:] = 0
            vector[list(self._frozen)] = list(self._frozen.values())
        self._emit(vector)

    def _emit(self, vector: npt.NDArray[np.int64]) -> None:
        rows = np.flatnonzero(vector != 0)  # several times as fast as without the comparison
        if len(rows):
            counts = vector[rows].astype(np.uint64)
            self._tally.intervals.append(Interval(int(counts.sum()), rows.astype(np.int64), counts))
