"""What each of MICA's analyses is: a state of one thread that sees slices of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from livepro.events.spans.feeding import Slice
    from livepro.mica.facts import Facts


class Analysis:
    """Base of the analyses. An interval's numbers are `values`; `next_interval` begins another one, and
    keeps what an analysis keeps: clocks, tables, histories, stacks."""

    additive: ClassVar[bool] = True
    """Whether the numbers of intervals, and those of threads, add up to those of the whole."""

    effort: ClassVar[int] = 1
    """About how many times as long as the least of the analyses it takes over the same events."""

    def see(self, part: Slice, facts: Facts) -> None:
        """Take in a slice of events."""
        raise NotImplementedError

    def read(self, words: npt.NDArray[np.int64], upto: int, at: int, facts: Facts) -> tuple[int, int]:
        """Take in the records of plain blocks executed whole, with others behind, from the word `at` on, up
        to one that begins at `upto` or is something else. Returns the word that it has come to, and the
        instructions executed. (For those of `livepro.mica.reading.READERS`.)"""
        raise NotImplementedError

    def values(self) -> list[int]:
        """The numbers of the interval under way, as MICA's files have them."""
        raise NotImplementedError

    def next_interval(self) -> None:
        """Begin the next interval."""
        raise NotImplementedError
