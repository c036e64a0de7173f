"""A thread's countdown, in its area: counted down for two purposes.

It is spread over cells. Each block takes its length from one of them, always the same, when it
is counted, and stops if that makes the cell negative: a single cell would make every block
wait for the one before it. As none is negative while a thread runs, what is left of all is
negative only if a cell is: the first block that goes beyond stops. A thread that
stops before that has its cells filled anew, each by how much it has been used: by about as many
instructions back as there are to come.

What is left is the smaller of what is left of an interval of the thread's basic block
vectors and of its share of a region's instructions (`regions`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout

INTERVAL, SHARE = 0, 1

ENDLESS = 1 << 62

_FIRST = layout.BUDGET // 8
_UNUSED = 1 << 10  # part of what is left that a cell gets without having been used
_SHORTEST = 1 << 12  # instructions looked back at, at least


class Budget:
    """The countdown in a thread's area (`words`), of so many `cells`. Both purposes begin without an
    end. To be changed while the thread stands still."""

    def __init__(self, words: npt.NDArray[np.uint64], cells: int = 1) -> None:
        self._cells = words.view(np.int64)[_FIRST : _FIRST + cells]
        self._filled = [0] * cells
        self._used = [0] * cells
        self._more = [0, 0]
        self._fill([ENDLESS, ENDLESS])

    def left(self, purpose: int) -> int:
        """What is left for a purpose: negative where a block has been charged that goes beyond."""
        left: int = sum(self._cells.tolist()) + self._more[purpose]
        return left

    def set(self, purpose: int, instructions: int) -> None:
        """Have so many left for a purpose, and as many as there are for the other."""
        left = [self.left(INTERVAL), self.left(SHARE)]
        left[purpose] = instructions
        self._fill(left)

    def give(self, instructions: int) -> None:
        """Give back what was charged and not executed (negative: charge it)."""
        self._more = [each + instructions for each in self._more]
        if min(self._more) < 0:  # what is left could be negative and no cell be
            self.level()

    def level(self) -> None:
        """Fill the cells anew with what is left."""
        self._fill([self.left(INTERVAL), self.left(SHARE)])

    def _fill(self, left: list[int]) -> None:
        total = min(left)
        if total < 0:
            shares = [-1] * len(self._filled)  # the next block stops, whichever it is
        else:
            back = max(total, _SHORTEST)
            before = max(sum(self._used), back)
            used = self._used = [
                each * back // before + max(a - b, 0)
                for each, a, b in zip(self._used, self._filled, self._cells.tolist(), strict=True)
            ]
            least = sum(used) // _UNUSED + 1
            whole = sum(used) + least * len(used)
            shares = [total * (each + least) // whole for each in used]
            shares[used.index(max(used))] += total - sum(shares)
        self._cells[:] = self._filled = shares
        filled = sum(shares)
        self._more = [each - filled for each in left]
