"""Further copies of blocks that branch to themselves.

A processor that adds to a word in memory has to wait until it has done so the last time: five or six
cycles pass from one addition to the next, in which a short loop could have gone round several times. Such a
block is therefore copied several times, each copy leads to the next one and counts for itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

_NONE = np.zeros(0, np.int64)

COPIES = 4
"""At most."""

_ENOUGH = 24
"""Instructions in one round through all copies: about as many as are executed while one waits."""


def copies_of(length: int) -> int:
    """How many copies are made of a block of so many instructions that branches to itself."""
    return min(COPIES, -(-_ENOUGH // length))


class Unrolled:
    """Which slots belong to further copies: what is counted there is counted for the slot of
    the block itself. They are slots in nothing else."""

    def __init__(self) -> None:
        self._mains: list[int] = []
        self._slots: list[int] = []
        self._of: dict[int, list[int]] = {}
        self._arrays = _NONE, _NONE
        self._counted_for, self._looked_at = _NONE, 0

    def __len__(self) -> int:
        return len(self._slots)

    def copy(self) -> Unrolled:
        """The same for a forked child."""
        other = Unrolled()
        other.add(self._slots, self._mains)
        return other

    def add(self, slots: Iterable[int], mains: Iterable[int]) -> None:
        """Slots of further copies, and those of the blocks they are copies of."""
        for slot, main in zip(slots, mains, strict=True):
            self._mains.append(main)
            self._of.setdefault(main, []).append(slot)
            self._slots.append(slot)  # last: other threads look

    def of(self, main: int) -> list[int]:
        """The slots of a block's further copies."""
        return self._of.get(main, [])

    def pairs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """All such slots, and whose they are (both int64). May be asked from another thread."""
        slots, mains = self._arrays
        size = len(self._slots)
        if len(slots) < size:
            slots, mains = np.array(self._slots[:size], np.int64), np.array(self._mains[:size], np.int64)
            self._arrays = slots, mains
        return slots, mains

    def gather(self, counts: npt.NDArray[np.int64]) -> None:
        """Add what was counted for further copies (by slot) to what their blocks have."""
        slots, mains = self.pairs()
        if not len(slots):
            return
        known = (slots < len(counts)) & (mains < len(counts))
        slots, mains = slots[known], mains[known]
        np.add.at(counts, mains, counts[slots])
        counts[slots] = 0

    def counted_for(self, size: int) -> npt.NDArray[np.int64]:
        """By slot, of so many at least, the slot that it counts for (int64): of those of further copies
        another one, of all others they themselves."""
        further, mains = self.pairs()
        if len(self._counted_for) < size:
            self._counted_for, self._looked_at = np.arange(2 * size), 0
        if self._looked_at < len(further):
            self._counted_for[further[self._looked_at :]] = mains[self._looked_at :]
            self._looked_at = len(further)
        return self._counted_for
