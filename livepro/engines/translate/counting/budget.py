"""A thread's countdown, in its area: counted down for two purposes.

Each block takes its length from it when it is counted, and stops if that makes it negative: the
first block that goes beyond stops. Where copies know allowances (`Countdown.ALLOWANCES`) a block
takes enough for many executions at once (`allowances`), as long as there is more left than a
little. When the supply of them is used up, the thread itself takes back what blocks have not used, and gives
smaller ones out (`x86_64.refilling`); whenever it stops, the tracer does.

What is left is the smaller of what is left of an interval of the thread's basic block
vectors and of its share of a region's instructions (`regions`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.counting.allowances import (
    EVENLY,
    FEW,
    IN_PROPORTION,
    LARGEST_CHUNK,
    AllowingCounters,
)

INTERVAL, SHARE = 0, 1

ENDLESS = 1 << 62

_LAST, _SUPPLY, _CHUNK = layout.BUDGET // 8, layout.SUPPLY // 8, layout.CHUNK // 8
_EACH, _ENDED = layout.REFILL_EACH // 8, layout.REFILL_ENDED // 8
_PORTION, _RATE = layout.PORTION // 8, layout.RATE // 8
_FORGOTTEN = 16  # of the most that blocks with an allowance have had, one such part is forgotten at a stop
_LARGEST = 1 << 40  # instructions: with more left, an allowance in proportion could take more than 64 bits
_FIRST_EACH = 1 << 17  # instructions taken for `_each` before it is known: twenty thousand blocks' or so


class Budget:
    """The countdown in a thread's area (`words`), with the allowances of its `counters`. Both
    purposes begin without an end. To be changed while the thread stands still."""

    def __init__(self, words: npt.NDArray[np.uint64], counters: AllowingCounters | None = None) -> None:
        self._words = words.view(np.int64)
        self._counters = counters
        self._more = [0, 0]
        self._each = 0  # instructions, if each block that has an allowance were executed once
        self._resting = 0, 0
        self._given = int(self._words[_LAST]) + int(self._words[_SUPPLY])
        self._executed = 0  # instructions since then, about
        self._chunk([ENDLESS, ENDLESS])
        self._fill([ENDLESS, ENDLESS])

    def left(self, purpose: int) -> int:
        """What is left for a purpose: negative where a block has been charged that goes beyond."""
        return self._at_least(purpose) + self._unspent()

    def spent(self, purpose: int) -> bool:
        """Whether what is left is negative."""
        return self._at_least(purpose) < 0 and self.left(purpose) < 0

    def set(self, purpose: int, instructions: int) -> None:
        """Have so many left for a purpose, and as many as there are for the other."""
        left = self._all_left()
        left[purpose] = instructions
        if not self._each:
            self._chunk(left)
        self._fill(left)

    def give(self, instructions: int) -> None:
        """Give back what was charged and not executed (negative: charge it)."""
        self._more = [each + instructions for each in self._more]
        if min(self._more) < 0:  # what is left could be negative and the cell not be
            self._fill(self._all_left())

    def withdraw(self, length: int) -> None:
        """Take all allowances back. The thread is at the stop of a block of so many instructions, for which
        there was too little."""
        if self._counters is not None:
            each, unspent = self._counters.withdraw()
            itself, self._words[_EACH] = int(self._words[_EACH]), 0
            self._each = max(each, itself, self._each - self._each // _FORGOTTEN, length)
            self._more = [more + unspent for more in self._more]
            self._given -= unspent
            self._rest()
            self._counters.leave()

    def level(self) -> None:
        """Give out anew what is left, when allowances have been withdrawn."""
        left = self._all_left()
        if self._counters is not None:
            self._chunk(left)
        self._fill(left)

    def _chunk(self, left: list[int]) -> None:
        """Have blocks allowed so many executions at once as what is left is enough for."""
        supply = min(left)
        chunk = supply // (EVENLY * (self._each or _FIRST_EACH))
        self._words[_CHUNK] = min(max(chunk, 1), LARGEST_CHUNK)
        shift = layout.PORTION_SHIFT + layout.RATE_SHIFT
        rate = (1 << shift) // (IN_PROPORTION * max(self._executed, supply, 1)) if supply <= _LARGEST else 0
        self._words[_RATE] = rate
        self._words[_PORTION] = max(supply, 0) * rate >> layout.RATE_SHIFT

    def _all_left(self) -> list[int]:
        unspent = self._unspent()
        return [self._at_least(INTERVAL) + unspent, self._at_least(SHARE) + unspent]

    def _at_least(self, purpose: int) -> int:
        """What is left, but for allowances."""
        return int(self._words[_LAST]) + int(self._words[_SUPPLY]) + self._more[purpose]

    def _unspent(self) -> int:
        """What is allowed and has not been executed."""
        if self._counters is None or self._resting == (self._words[_LAST], self._words[_SUPPLY]):
            return 0
        return self._counters.unspent()

    def _rest(self) -> None:
        """There are no allowances, and will be none before the thread has taken something."""
        self._resting = int(self._words[_LAST]), int(self._words[_SUPPLY])

    def _fill(self, left: list[int]) -> None:
        total, unspent = min(left), self._unspent()
        self._executed += self._given - (int(self._words[_LAST]) + int(self._words[_SUPPLY]) + unspent)
        if self._counters is not None and unspent > total:
            # By a command, this may be done to a thread that sleeps in a system call; one that woke in
            # the same moment would lose what it counts in it. A pause that ends is all that can ask for it,
            # with less left of an interval than was allowed when it began.
            self._counters.withdraw()
            unspent = 0
        free = max(total - unspent, -1)  # negative: the next block stops, whichever it is
        last = free if self._counters is None or free < FEW else 0
        self._words[_LAST], self._words[_SUPPLY], self._words[_ENDED] = last, free - last, 0
        if unspent:
            self._resting = -2, -2  # as it never is
        else:
            self._rest()
        self._given = free + unspent
        self._more = [each - free - unspent for each in left]
