"""Counters that run ahead of a thread's budget: blocks with an allowance need not ask it.

A counter is minus the executions that its block has been allowed and has not made yet. One that is
used up takes a further allowance for its block from the budget, which is noted beside it (`layout.MORE`):
the two together are what has been executed. How large it is depends on how often the block has been
executed so far, so that much is allowed where it will be used, and little lies elsewhere. When the supply
is too small, what others have not used is taken back first; when there is no more to be had, each execution
takes its own from the budget, and is counted beside the counter, which stays 0.

A group of counters (`layout.GROUP`) one of which has taken an allowance is marked as touched: all others are
as they were, and need not be looked at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.counting.counters import Cells, Numbered, ThreadCounters
from livepro.engines.translate.counting.sparse import Array, Sparse

FEW = 1 << 15
"""If fewer instructions than this are left, none are given out in allowances: each block that is executed
takes ten times as long, but all of them together no longer than taking back once more."""
EVENLY = 8
"""Blocks are allowed one of so many parts of what is left in equal numbers of executions,"""
IN_PROPORTION = 4
"""and one of so many in proportion to their executions so far."""
LARGEST_CHUNK = 1 << 14
"""Executions that are allowed in equal numbers, at most."""

_FIRST = layout.COUNTERS // 8
_MORE = layout.MORE // 8
_ENDED = layout.REFILL_ENDED // 8


class AllowingCounters(ThreadCounters):
    """A thread's counters, with their allowances."""

    def __init__(self, words: npt.NDArray[np.uint64], space: Numbered) -> None:
        super().__init__(words, space)
        self._signed = words.view(np.int64)
        self._groups = self._signed[_FIRST : _FIRST + layout.MAX_SLOTS].reshape(-1, layout.GROUP)
        self._more = self._signed[_MORE : _MORE + layout.MAX_SLOTS].reshape(-1, layout.GROUP)
        at = layout.TOUCHED // 8
        self._touched = words[at : at + layout.TOUCHED_SIZE // 8].view(np.uint8)
        self._noted: dict[Cells, Array] = {}
        self._news: list[Sparse] = []

    def counted(self, cells: Array) -> Array:
        return super().counted(cells) + self._signed[_MORE + cells]

    def _one(self, cell: int) -> int:
        return int(self._signed[_FIRST + cell] + self._signed[_MORE + cell])

    def _held(self, cells: Cells, size: int) -> Array:
        at = _MORE + cells.first
        return super()._held(cells, size) + self._signed[at : at + size]

    def _read(self, cells: Cells, size: int) -> Array:
        return self._held(cells, size)  # a sum, which nothing changes

    def _reset(self, cells: Cells) -> None:
        super()._reset(cells)
        at = _MORE + cells.first
        self._signed[at : at + len(cells)] = 0
        self._noted.pop(cells, None)
        self._touched[_groups_of(cells)] = 0

    def fold(self, cells: Cells) -> int:
        touched = self._touched_in(cells)
        _, unspent = self._withdraw(cells, touched)
        self._note(cells, touched)
        super().fold(cells)
        return unspent

    def clear(self) -> None:
        super().clear()
        self._news = []

    # -- what has changed

    def _touched_in(self, cells: Cells) -> Array:
        """The groups of a generation's cells that may have changed since note was taken."""
        groups = _groups_of(cells)
        touched: Array = np.flatnonzero(self._touched[groups]) + groups.start
        return touched

    def _note(self, cells: Cells, touched: Array, *, allowed: bool = True) -> None:
        """Take note of what groups of a generation's cells say now; `allowed` (False: none) is whether some
        may have an allowance."""
        if not len(touched):
            return
        slots, groups = cells.slots(), _groups_of(cells)
        noted = self._noted.get(cells)
        if noted is None or len(noted) < groups.stop - groups.start:
            more = np.zeros((groups.stop - groups.start, layout.GROUP), np.int64)
            if noted is not None:
                more[: len(noted)] = noted
            noted = self._noted[cells] = more
        now, rows = self._more[touched], touched - groups.start
        if allowed:
            now += self._groups[touched]
        changes = (now - noted[rows]).reshape(-1)
        noted[rows] = now
        at = np.flatnonzero(changes != 0)
        if len(at):
            counted_for = self._space.unrolled.counted_for(len(self._space.lengths()))
            self._news.append((counted_for[slots[_cells_at(rows, at)]], changes[at]))

    def news(self) -> list[Sparse]:
        for cells in self._space.counting:
            self._note(cells, self._touched_in(cells))
        news, self._news = self._news, []
        return news

    # -- allowances

    def _allowed(self, cells: Cells, touched: Array) -> tuple[Array, Array, Array]:
        """Which cells in groups of a generation have an allowance, of how many executions, and the
        lengths of their blocks."""
        held = self._groups[touched].reshape(-1)
        which = np.flatnonzero(held < 0)
        at = _cells_at(touched, which)
        return at, -held[which], self._space.lengths()[cells.slots()[at - cells.first]]

    def unspent(self) -> int:
        """Instructions that are allowed and have not been executed."""
        allowed = (self._allowed(cells, self._touched_in(cells)) for cells in self._space.counting)
        return sum(int(unspent @ lengths) for _, unspent, lengths in allowed)

    def withdraw(self) -> tuple[int, int]:
        """Take back all allowances. The thread stands still, at a boundary or at a stop of its own.
        Returns how many instructions one execution of each block that had one has, and how many
        were yet to be executed."""
        if self._words[_ENDED]:
            return 0, 0
        taken = [self._withdraw(cells, self._touched_in(cells)) for cells in self._space.counting]
        return sum(each for each, _ in taken), sum(unspent for _, unspent in taken)

    def _withdraw(self, cells: Cells, touched: Array) -> tuple[int, int]:
        """The same for groups of one generation's cells."""
        at, unspent, lengths = self._allowed(cells, touched)
        self._signed[_FIRST + at] = 0
        self._signed[_MORE + at] -= unspent
        return int(lengths.sum()), int(unspent @ lengths)

    def leave(self) -> None:
        """All allowances have been withdrawn from a thread that is at a stop of its own: none of its
        counters changes before its group has been touched anew."""
        for cells in self._space.counting:
            self._note(cells, self._touched_in(cells), allowed=False)
            self._touched[_groups_of(cells)] = 0


def _groups_of(cells: Cells) -> slice:
    """The groups that a generation's cells are in."""
    first, end = cells.range
    return slice(first // layout.GROUP, -(-end // layout.GROUP))


def _cells_at(groups: Array, places: Array) -> Array:
    """The cells that are at some places when those of `groups` follow each other."""
    cells: Array = groups[places // layout.GROUP] * layout.GROUP + places % layout.GROUP
    return cells
