"""A thread's countdown: one cell in its area, counted down for two purposes.

The cell falls by a block's length where the block is counted, and a thread that makes it
negative stops. It holds the smaller of what is left of an interval of its basic
block vectors and of its share of a region's instructions (`regions`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout

INTERVAL, SHARE = 0, 1

ENDLESS = 1 << 62

_CELL = layout.BUDGET // 8


class Budget:
    """The countdown in a thread's area (`words`). Both purposes begin without an end. To be changed
    while the thread stands still."""

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self._words = words.view(np.int64)
        self._words[_CELL] = ENDLESS
        self._more = [0, 0]

    def left(self, purpose: int) -> int:
        """What is left for a purpose: negative where a block has been charged that goes beyond."""
        return int(self._words[_CELL]) + self._more[purpose]

    def set(self, purpose: int, instructions: int) -> None:
        """Have so many left for a purpose, and as many as there are for the other."""
        left = [self.left(INTERVAL), self.left(SHARE)]
        left[purpose] = instructions
        cell = min(left)
        self._words[_CELL] = cell
        self._more = [each - cell for each in left]

    def give(self, instructions: int) -> None:
        """Give back what was charged and not executed (negative: charge it)."""
        self._words[_CELL] += instructions
