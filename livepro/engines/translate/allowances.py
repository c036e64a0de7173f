"""Counters that run ahead of a thread's budget: blocks with an allowance need not ask it.

A counter is minus the executions that its block has been allowed and has not made yet. One that is
used up takes a further allowance for its block from the budget (`layout.CHUNK` executions), which is
noted beside it (`layout.MORE`): the two together are what has been executed. When the supply is too
small, what others have not used is taken back first; when there is no more to be had, each execution
takes its own from the budget, and is counted beside the counter, which stays 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.counters import Cells, Numbered, ThreadCounters

FEW = 1 << 17
"""If fewer instructions than this are left, none are given out in allowances: each block that is executed
takes ten times as long, but all of them together no longer than taking back once more."""
IN_ALLOWANCES = 2
"""At most one of so many parts of what is left, about, is allowed and not used when the rest is used up."""
LARGEST_CHUNK = 1 << 14
"""Executions that are allowed at once, at most."""

_FIRST = layout.COUNTERS // 8
_MORE = layout.MORE // 8


class AllowingCounters(ThreadCounters):
    """A thread's counters, with their allowances."""

    def __init__(self, words: npt.NDArray[np.uint64], space: Numbered) -> None:
        super().__init__(words, space)
        self._signed = words.view(np.int64)

    def counted(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return super().counted(cells) + self._signed[_MORE + cells]

    def _one(self, cell: int) -> int:
        return int(self._signed[_FIRST + cell] + self._signed[_MORE + cell])

    def _held(self, cells: Cells, size: int) -> npt.NDArray[np.int64]:
        at = _MORE + cells.first
        return super()._held(cells, size) + self._signed[at : at + size]

    def _read(self, cells: Cells, size: int) -> npt.NDArray[np.int64]:
        return self._held(cells, size)  # a sum, which nothing changes

    def _reset(self, cells: Cells) -> None:
        super()._reset(cells)
        at = _MORE + cells.first
        self._signed[at : at + len(cells)] = 0

    def fold(self, cells: Cells) -> int:
        _, unspent = self._withdraw(cells)
        super().fold(cells)
        return unspent

    # -- allowances

    def _allowed(self, cells: Cells) -> tuple[npt.NDArray[np.int64], ...]:
        """Which cells of a generation have an allowance, of how many executions, and the lengths of their
        blocks (all int64)."""
        slots = cells.slots()
        at = np.flatnonzero(super()._held(cells, len(slots)) < 0)
        lengths = self._space.lengths()[slots[at]]
        at += cells.first
        return at, -self._signed[_FIRST + at], lengths

    def unspent(self) -> int:
        """Instructions that are allowed and have not been executed."""
        allowed = (self._allowed(cells) for cells in self._space.counting)
        return sum(int(unspent @ lengths) for _, unspent, lengths in allowed)

    def withdraw(self) -> tuple[int, int]:
        """Take back all allowances. The thread stands still, at a boundary or at a stop of its own.
        Returns how many instructions one execution of each block that had one has, and how many
        were yet to be executed."""
        taken = [self._withdraw(cells) for cells in self._space.counting]
        return sum(each for each, _ in taken), sum(unspent for _, unspent in taken)

    def _withdraw(self, cells: Cells) -> tuple[int, int]:
        """The same for one generation."""
        at, unspent, lengths = self._allowed(cells)
        self._signed[_FIRST + at] = 0
        self._signed[_MORE + at] -= unspent
        return int(lengths.sum()), int(unspent @ lengths)
