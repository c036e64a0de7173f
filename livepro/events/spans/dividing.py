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

from livepro.engines.stream import FLAGS_SHIFT, GOES_ON, NUMBER, PARTIAL, head
from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.records import record_at
from livepro.isa.access import ALL_64

Records = npt.NDArray[np.int64]
ALL = 1 << 62
NONE = np.zeros(0, np.int64)


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

    def __init__(self, *, opened: bool, executed: int = 0) -> None:
        """The thread has `executed` so many instructions already, in the region if that has begun."""
        self.opened = opened
        self.position = executed
        self.counted = executed if opened else 0  # of those in the region
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

    @property
    def waits(self) -> bool:
        """Whether the region ends where the thread is, once it is known where it goes on from there."""
        return self.opened and self.counted > 0 and self.left == 0 and self.position not in self._goes

    def ending(self, following: Records, tables: StaticTables) -> Records | None:
        """What follows the last record of the region, which says whether its last branch was taken: where the
        thread goes on, if that was told, or `following` records say so. None if nothing has been executed."""
        if not self.opened or not self.counted:
            return None
        goes = self._goes.get(self.position)
        if goes is None and len(following):
            first = int(following[0])
            elsewhere = first >> FLAGS_SHIFT & GOES_ON
            goes = int(following[1] if elsewhere else tables.address[tables.first[first & NUMBER]])
        return None if goes is None else np.array([head(0, GOES_ON), goes & ALL_64], np.uint64).view(np.int64)

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

    def __init__(self, *, waiting: bool, executed: int = 0) -> None:
        self._bounds = Bounds(opened=not waiting, executed=executed)

    @property
    def position(self) -> int:
        """Instructions that the thread has executed, as far as its records have been seen."""
        return self._bounds.position

    def bound(self, position: int, goes: int | None, tables: StaticTables) -> Iterator[tuple[Records, int]]:
        """See `Bounds.add`; the pieces that come of it."""
        if self._bounds.add(position, goes) and not self._bounds.waits:
            yield from self._turn(NONE, tables)

    def pieces(self, words: Records, tables: StaticTables) -> Iterator[tuple[Records, int]]:
        """Those of the thread's next records."""
        bounds, at = self._bounds, 0
        shape = tables.first, tables.words, tables.access, tables.pattern, tables.lanes
        while at < len(words):
            if bounds.left == 0:
                yield from self._turn(words[at:], tables)
            behind, executed = ahead(words, at, bounds.left, ALL, *shape)
            if bounds.opened and behind > at:
                yield words[at:behind], 0
            bounds.moved(executed)
            at = behind
            if bounds.left and at < len(words):
                executed, length = extent(words[at:], *shape)
                yield from self._divided(words[at : at + length], executed, shape)
                at += length
        if bounds.left == 0 and not bounds.waits:
            yield from self._turn(NONE, tables)

    def _divided(
        self, record: Records, executed: int, shape: tuple[npt.NDArray[Any], ...]
    ) -> Iterator[tuple[Records, int]]:
        """A record that bounds are in. (One at its end is seen to by who has what follows.)"""
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
            if done < executed:
                self._bounds.turn()  # no branch: these are last

    def _turn(self, following: Records, tables: StaticTables) -> Iterator[tuple[Records, int]]:
        ending = self._bounds.ending(following, tables)
        if ending is not None:
            yield ending, 0
        self._bounds.turn()
