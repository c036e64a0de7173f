"""A thread's records between two positions: the region of a run that is counted, in pieces.

Where it begins and ends is known when the thread stands there, and told in instructions that the thread has
executed. What is recorded may come later.
"""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream import GOES_ON, NUMBER, PARTIAL, head
from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.records import record_at

Records = npt.NDArray[np.int64]
ALL = 1 << 62


@njit(nogil=True, cache=True)
def ahead(words, begin, most, records, first, words_of, access_of, pattern, lanes_of):
    """The word behind the records from `begin` on that together execute at most so many instructions, and are
    at most so many; and the instructions that they execute."""
    at, executed = begin, 0
    while at < len(words) and records > 0:
        number, count, behind = record_at(words, at, first, words_of, access_of, pattern, lanes_of)
        if executed + count > most:
            break
        at = behind
        executed += count
        records -= number >= 0
    return at, executed


@njit(nogil=True, cache=True)
def extent(words, first, words_of, access_of, pattern, lanes_of):
    """The instructions that the first record executes, and the word behind it."""
    _, count, behind = record_at(words, 0, first, words_of, access_of, pattern, lanes_of)
    return count, behind


class Bounds:
    """Where a thread's part of the region begins and ends: `bounds` are the positions at which it opens or
    closes next, in instructions of the thread."""

    def __init__(self, *, opened: bool) -> None:
        self.opened = opened
        self.position = 0
        self.counted = 0  # of those in the region
        self.bounds: list[int] = []
        self._goes: dict[int, int] = {}  # where the thread goes on at a position

    def add(self, position: int, goes: int | None) -> bool:
        """The region begins, or ends, where the thread has executed so many instructions; from there it goes
        on at `goes`, if that is known. (A thread that has ended by then is told 0.) Whether it is there."""
        if position < self.position:
            assert position == 0, "recorded before it was executed"
            return False
        self.bounds.append(position)
        if goes is not None:
            self._goes[position] = goes
        return self.position == position

    @property
    def left(self) -> int:
        """Instructions up to the next bound."""
        return self.bounds[0] - self.position if self.bounds else ALL

    def ending(self) -> Records | None:
        """What follows the last record of the region: where the thread goes on, if that is known, which says
        whether its last branch was taken."""
        goes = self._goes.get(self.position) if self.opened else None
        return None if goes is None else np.array([head(0, GOES_ON), goes], np.uint64).view(np.int64)

    def moved(self, executed: int) -> None:
        """The thread has executed so many instructions more."""
        self.position += executed
        self.counted += executed if self.opened else 0

    def turn(self) -> None:
        """Open or close, if a bound has been reached."""
        while self.bounds and self.bounds[0] == self.position:
            self.opened = not self.opened
            del self.bounds[0]


class RegionRecords:
    """One thread's records of the region. A piece is some records, and how many instructions of the first of
    them have been executed before. If it is `waiting`, the region has yet to begin."""

    def __init__(self, *, waiting: bool) -> None:
        self._bounds = Bounds(opened=not waiting)

    def bound(self, position: int, goes: int | None) -> Iterator[tuple[Records, int]]:
        """See `Bounds.add`; the pieces that come of it."""
        if self._bounds.add(position, goes):
            yield from self._turn()

    def pieces(self, words: Records, tables: StaticTables) -> Iterator[tuple[Records, int]]:
        """Those of the thread's next records."""
        bounds, at = self._bounds, 0
        shape = tables.first, tables.words, tables.access, tables.pattern, tables.lanes
        while at < len(words):
            behind, executed = ahead(words, at, bounds.left, ALL, *shape)
            if bounds.opened and behind > at:
                yield words[at:behind], 0
            bounds.moved(executed)
            at = behind
            if bounds.left == 0:
                yield from self._turn()
            elif at < len(words):
                executed, length = extent(words[at:], *shape)
                yield from self._divided(words[at : at + length], executed, shape)
                at += length

    def _divided(
        self, record: Records, executed: int, shape: tuple[npt.NDArray[Any], ...]
    ) -> Iterator[tuple[Records, int]]:
        """A record that bounds are in."""
        bounds, done = self._bounds, 0
        while done < executed:
            upto = min(executed, done + bounds.left)
            if bounds.opened:
                part = record
                if upto < executed:
                    part = record.copy()
                    part[0] = head(int(record[0]) & NUMBER, PARTIAL, upto)
                    part = part[: extent(part, *shape)[1]]
                yield part, done
            bounds.moved(upto - done)
            done = upto
            if bounds.left == 0:
                yield from self._turn()

    def _turn(self) -> Iterator[tuple[Records, int]]:
        ending = self._bounds.ending()
        if ending is not None:
            yield ending, 0
        self._bounds.turn()
