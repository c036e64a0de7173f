"""Exact basic block vectors of one thread that runs from a code cache.

The thread's budget counts down by a block's length where the block is counted;
when it falls below zero the thread stops in that block, and the block is split
between two intervals by arithmetic. Position in the instruction stream is at
all times `boundary - budget`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import CutRule, ThreadTally
from livepro.engines.translate import layout
from livepro.model import Interval

_FIRST = layout.COUNTERS // 8
_BUDGET = layout.BUDGET // 8


class Lengths(Protocol):
    """Knows how many instructions each counter slot's block has."""

    def lengths(self) -> npt.NDArray[np.int64]:
        """One length per slot (int64)."""


@dataclass(frozen=True, slots=True)
class _Base:
    """What had been counted when an interval began, and the instructions that belong
    to it of the block the boundary fell into."""

    counters: npt.NDArray[np.int64]
    entries: dict[int, int]
    partial: dict[tuple[int, int], int]
    carried: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Cut:
    """A boundary in the block last counted, in case the thread leaves that block before it gets there."""

    base: _Base
    boundary: int
    slot: int
    executions: int


class IntervalClock:
    """Cuts one thread's instruction stream into intervals."""

    def __init__(
        self, words: npt.NDArray[np.uint64], tally: ThreadTally, space: Lengths, cut: CutRule
    ) -> None:
        self._words = words
        self._budget = words.view(np.int64)
        self._tally = tally
        self._space = space
        self._cut = cut
        self._boundary = cut(0)
        self._budget[_BUDGET] = self._boundary
        self._base = self._now({})
        self._cuts: list[_Cut] = []

    def _now(self, carried: dict[int, int]) -> _Base:
        counters = self._words[_FIRST : _FIRST + len(self._space.lengths())].astype(np.int64)
        return _Base(counters, dict(self._tally.entries), dict(self._tally.partial), carried)

    def _vector(self) -> npt.NDArray[np.int64]:
        """Instructions executed in each block since the interval began (int64, per slot)."""
        lengths = self._space.lengths()
        base = self._base
        entries = self._words[_FIRST : _FIRST + len(lengths)].astype(np.int64)
        entries[: len(base.counters)] -= base.counters
        for slot, count in self._tally.entries.items():
            entries[slot] += count - base.entries.get(slot, 0)
        vector = entries * lengths
        for (slot, length), times in self._tally.partial.items():
            vector[slot] += length * (times - base.partial.get((slot, length), 0))
        for slot, count in base.carried.items():
            vector[slot] += count
        return vector

    def ran_out(self, slot: int) -> None:
        """The budget is spent: the boundary lies in the block last counted, of `slot`."""
        executions = int(self._words[_FIRST + slot])
        if self._cuts and (self._cuts[-1].slot, self._cuts[-1].executions) != (slot, executions):
            self._cuts.clear()
        while (behind := -int(self._budget[_BUDGET])) > 0:
            vector = self._vector()
            vector[slot] -= behind
            self._emit(vector)
            self._cuts.append(_Cut(self._base, self._boundary, slot, executions))
            self._base = self._now({slot: behind})
            following = self._cut(self._boundary)
            self._budget[_BUDGET] += following - self._boundary
            self._boundary = following

    def adjust(self, slot: int, executed: int, charged: int) -> None:
        """The thread left the block of `slot` after `executed` instructions, `charged`
        having been taken from the budget for it. To be told after the tally is."""
        self._budget[_BUDGET] += charged - executed
        self.ran_out(slot)
        position = self._boundary - int(self._budget[_BUDGET])
        executions = int(self._words[_FIRST + slot])
        while self._cuts and (self._cuts[-1].slot, self._cuts[-1].executions) == (slot, executions):
            last = self._cuts[-1]
            if position >= last.boundary:
                break
            # It did not get as far as the boundary after all.
            del self._cuts[-1]
            self._tally.intervals.pop()
            self._base = last.base
            self._boundary = last.boundary
            self._budget[_BUDGET] = last.boundary - position

    def finish(self) -> None:
        """Close the last, partial interval."""
        self._emit(self._vector())

    def _emit(self, vector: npt.NDArray[np.int64]) -> None:
        rows = np.flatnonzero(vector)
        if len(rows):
            counts = vector[rows].astype(np.uint64)
            self._tally.intervals.append(Interval(int(counts.sum()), rows.astype(np.int64), counts))
