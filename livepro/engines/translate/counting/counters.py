"""Which block each counter counts, and what a thread's counters say.

A block keeps its number (its *slot*) for as long as its process lives; the counter that its copy
increments (its *cell*) is its own for as long as the copy lives. When all copies are dropped
(`generations`), new ones count in the other part of a thread's area; what the first part holds is
then added to the thread's counts by slot, and the part is used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.counting.sparse import Sparse, total
from livepro.engines.translate.translator.unrolled import Unrolled

_FIRST = layout.COUNTERS // 8
_NONE = np.zeros(0, np.int64)

_FIRST_PART = layout.MAX_SLOTS // 4 * 3 // layout.GROUP * layout.GROUP
PARTS = (range(_FIRST_PART), range(_FIRST_PART, layout.MAX_SLOTS))
"""The counters of each second generation. Hardly any program needs a second one: most are the first one's
(chromium executes 0.6 million blocks of 1.1 million translated)."""


class Cells:
    """The counters of one generation of copies, of `part`: the n-th cell counts for the n-th slot taken. The
    `original` generation's cells are the slots themselves."""

    def __init__(self, part: range, *, original: bool = False) -> None:
        self.part = part
        self.original = original
        self._slots: list[int] = []
        self._cells: dict[int, int] = {}
        self._array = _NONE
        self._growing = Lock()  # other threads ask, too

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def range(self) -> tuple[int, int]:
        """The first cell, and the first behind those taken."""
        return self.first, self.first + len(self._slots)

    @property
    def first(self) -> int:
        """The first cell."""
        return self.part.start

    @property
    def free(self) -> int:
        """How many cells have not been taken."""
        return len(self.part) - len(self._slots)

    @property
    def next(self) -> Cells:
        """The cells of the next generation: none has been taken."""
        return Cells(PARTS[self.part == PARTS[0]])

    def copy(self) -> Cells:
        """The same for a forked child."""
        other = Cells(self.part, original=self.original)
        other._slots, other._cells = self._slots.copy(), self._cells.copy()
        return other

    def take(self, slot: int) -> int:
        """The cell for a slot: the one it has, else a new one."""
        cell = self.of(slot)
        if cell is None:
            cell = self.first + len(self._slots)
            if self.original:
                assert cell == slot
            else:
                self._cells[slot] = cell
            self._slots.append(slot)
        return cell

    def take_all(self, slots: Sequence[int]) -> int:
        """Cells for so many slots, one behind the other, none of which has one; returns the first one's."""
        cell = self.first + len(self._slots)
        if self.original:
            assert not slots or cell == slots[0]
        else:
            self._cells.update(zip(slots, range(cell, cell + len(slots)), strict=True))
        self._slots += slots
        return cell

    def of(self, slot: int) -> int | None:
        """The cell that counts for a slot, None if there is none."""
        if self.original:
            return slot if slot < len(self._slots) else None
        return self._cells.get(slot)

    def slot(self, cell: int) -> int | None:
        """The slot that a cell counts for, None for a cell that is not one of these."""
        at = cell - self.first
        return self._slots[at] if 0 <= at < len(self._slots) else None

    def slots(self) -> npt.NDArray[np.int64]:
        """The slot of each cell (int64)."""
        with self._growing:
            known = len(self._array)
            if known < len(self._slots):
                self._array = np.concatenate((self._array, np.array(self._slots[known:], np.int64)))
            return self._array


class Numbered(Protocol):
    """Knows which cells count at the moment."""

    unrolled: Unrolled

    @property
    def counting(self) -> tuple[Cells, ...]:
        """The generations of cells that may hold counts."""

    def lengths(self) -> npt.NDArray[np.int64]:
        """Instructions of each slot's block (int64)."""


class ThreadCounters:
    """How often one thread has executed each block, as its area (`words`) and what was taken out
    of that say. For another thread than the engine's, what it says is right only if the
    generations have not changed meanwhile (`Translations.epoch`)."""

    def __init__(self, words: npt.NDArray[np.uint64], space: Numbered) -> None:
        self._words = words
        self._space = space
        self._folded: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] = (_NONE, _NONE)
        self._told = _NONE

    def counted(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Executions counted in cells (int64)."""
        return self._words[_FIRST + cells].view(np.int64)

    def _one(self, cell: int) -> int:
        """Executions counted in a cell."""
        return int(self._words[_FIRST + cell])

    def _held(self, cells: Cells, size: int) -> npt.NDArray[np.int64]:
        """Executions counted in the first `size` of a generation's cells (int64), perhaps live."""
        at = _FIRST + cells.first
        return self._words[at : at + size].view(np.int64)

    def _read(self, cells: Cells, size: int) -> npt.NDArray[np.int64]:
        """The same at this moment, to keep."""
        return self._held(cells, size).copy()

    def of(self, slot: int) -> int:
        """Executions of one block."""
        return sum(self._counted_for(each) for each in (slot, *self._space.unrolled.of(slot)))

    def _counted_for(self, slot: int) -> int:
        total = 0
        for cells in self._space.counting:
            cell = cells.of(slot)
            if cell is not None:
                total += self._one(cell)
        slots, times = self._folded
        at = int(np.searchsorted(slots, slot))
        if at < len(slots) and slots[at] == slot:
            total += int(times[at])
        return total

    def all(self, size: int = -1) -> npt.NDArray[np.int64]:
        """Executions of each block (int64, by slot; of the first `size` slots)."""
        if size < 0:
            size = len(self._space.lengths())
        first, *others = self._space.counting
        if first.original and not others and len(first) >= size:
            out = self._read(first, size)
        else:
            out = np.zeros(size, np.int64)
            for cells in (first, *others):
                slots = cells.slots()
                _add(out, slots, self._held(cells, len(slots)))
            _add(out, *self._folded)
        self._space.unrolled.gather(out)
        return out

    def ran(self) -> Sparse:
        """How often each block has been executed that has been, in the order of slots."""
        counted_for = self._space.unrolled.counted_for(len(self._space.lengths()))
        parts = [self._folded]
        for cells in self._space.counting:
            slots = cells.slots()
            held = self._held(cells, len(slots))
            some = np.flatnonzero(held != 0)
            parts.append((slots[some], held[some]))
        return total([(counted_for[slots], times) for slots, times in parts])

    def news(self) -> list[Sparse]:
        """How often blocks have been executed since this was asked last, in any number of parts. For one
        who asks; not for other threads."""
        now = self.all()
        changes = now.copy()
        changes[: len(self._told)] -= self._told
        self._told = now
        slots = np.flatnonzero(changes != 0)
        return [(slots, changes[slots])]

    def instructions(self, lengths: npt.NDArray[np.int64]) -> int:
        """Instructions in all these executions, given the length of each block."""
        return int(self.all(len(lengths)) @ lengths)

    def fold(self, cells: Cells) -> int:
        """Take the counts out of `cells`, which nothing increments any more. Returns how many instructions
        they were allowed and have not executed."""
        slots = cells.slots()
        held = self._held(cells, len(slots))
        ran = np.flatnonzero(held)
        if not len(ran):
            return 0
        both = np.concatenate((self._folded[0], slots[ran]))
        folded, where = np.unique(both, return_inverse=True)
        times = np.zeros(len(folded), np.int64)
        np.add.at(times, where, np.concatenate((self._folded[1], held[ran])))
        self._folded = folded, times
        self._reset(cells)
        return 0

    def clear(self) -> None:
        """Leave the area as it was found: all counters 0."""
        for cells in self._space.counting:
            self._reset(cells)
        self._folded = (_NONE, _NONE)
        self._told = _NONE

    def _reset(self, cells: Cells) -> None:
        """Let a generation's counters begin anew."""
        at = _FIRST + cells.first
        words = self._words[at : at + len(cells)]
        words[np.flatnonzero(words != 0)] = 0  # not all: what has never been written to takes no memory


def _add(out: npt.NDArray[np.int64], slots: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> None:
    """Add counts of slots, each of which is there once; those `out` has no place for are newer."""
    if len(slots) and int(slots.max()) >= len(out):
        known = slots < len(out)
        slots, times = slots[known], times[known]
    out[slots] += times
