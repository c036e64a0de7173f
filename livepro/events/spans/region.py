"""A thread's stream between two positions, made spans: the region of a run that is counted.

Where it begins and ends is known when the thread stands there, and told in instructions that the thread has
executed. What is recorded may come later.
"""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream import GOES_ON, head
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamThread
from livepro.events.spans.feeding import Feed, Reader, Slice, Taker
from livepro.events.spans.flattening import Turns
from livepro.events.spans.listing import Listing
from livepro.events.spans.records import record_at

Noted = npt.NDArray[np.uint8]
_ALL = 1 << 62


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


class _Gate:
    """Passes spans on while it is open. `bounds` are the positions at which it opens or closes next, in
    instructions of the thread."""

    def __init__(self, taker: Taker, *, opened: bool) -> None:
        self._taker = taker
        self.opened = opened
        self.position = 0
        self.counted = 0  # of those in the region
        self.bounds: list[int] = []

    def take(self, part: Slice) -> None:
        """See `Taker`."""
        if self.opened:
            self._taker.take(part)

    def cut(self, retired: int) -> None:
        """See `Taker`: one instruction more of a record that a bound is in."""
        self.moved(retired)
        self.turn()

    def moved(self, executed: int) -> None:
        """The thread has executed so many instructions more."""
        self.position += executed
        self.counted += executed if self.opened else 0

    def turn(self) -> None:
        """Open or close, if a bound has been reached."""
        while self.bounds and self.bounds[0] == self.position:
            self.opened = not self.opened
            del self.bounds[0]


class Regions:
    """The region of a run, as a consumer is told of it (`livepro.events.pump.Regional`), and the feeds that
    keep to it."""

    def __init__(self) -> None:
        self._waiting: bool | None = None  # None: there is no region
        self._told: list[tuple[Mapping[StreamThread, int], Mapping[StreamThread, int]]] = []
        self._feeds: dict[StreamThread, RegionFeed] = {}

    def keeps(self, *, waiting: bool) -> None:
        """See `Regional`."""
        self._waiting = waiting

    def feed(
        self, thread: StreamThread, taker: Taker, listing: Listing, turns: Turns, noted: Noted, size: int = 0
    ) -> Feed | RegionFeed:
        """What feeds a thread's records to a taker: all of them, or those of the region."""
        if self._waiting is None:
            reader = taker if isinstance(taker, Reader) else None
            return Feed(taker, listing, turns, noted, size, reader)
        feed = self._feeds[thread] = RegionFeed(taker, listing, turns, noted, waiting=self._waiting)
        for positions, goes in self._told:
            feed.bound(positions.get(thread, 0), goes.get(thread), None)
        return feed

    def bound(
        self,
        positions: Mapping[StreamThread, int],
        goes: Mapping[StreamThread, int],
        tables: Callable[[StreamThread], StaticTables],
    ) -> None:
        """See `Regional`; `tables` has those of a thread's image."""
        self._told.append((positions, goes))
        for thread, feed in self._feeds.items():
            feed.bound(positions.get(thread, 0), goes.get(thread), tables(thread))


class RegionFeed:
    """Feeds one thread's records to a taker as `Feed` does, but those of the region only. If it is `waiting`,
    that has yet to begin."""

    def __init__(self, taker: Taker, listing: Listing, turns: Turns, noted: Noted, *, waiting: bool) -> None:
        self._gate = _Gate(taker, opened=not waiting)
        self._goes: dict[int, int] = {}  # where the thread goes on at a position
        reader = taker if isinstance(taker, Reader) else None
        self._feed = Feed(self._gate, listing, turns, noted, reader=reader)

    @property
    def instructions(self) -> int:
        """Instructions of the region that have been taken in."""
        return self._gate.counted

    def bound(self, position: int, goes: int | None, tables: StaticTables | None) -> None:
        """The region begins, or ends, where the thread has executed so many instructions; from there it goes
        on at `goes`, if that is known. (A thread that has ended by then is told 0.)"""
        gate = self._gate
        if position < gate.position:
            assert position == 0, "recorded before it was executed"
            return
        gate.bounds.append(position)
        if goes is not None:
            self._goes[position] = goes
        if gate.position == position:
            self._turn(tables)

    def see(self, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """Take in the next records."""
        gate, at = self._gate, 0
        shape = tables.first, tables.words, tables.access, tables.pattern, tables.lanes
        while at < len(words):
            left = gate.bounds[0] - gate.position if gate.bounds else _ALL
            behind, executed = ahead(words, at, left, _ALL, *shape)
            if gate.opened and behind > at:
                self._feed.see(words[at:], tables, upto=behind - at)
            gate.moved(executed)
            at = behind
            if gate.bounds and gate.bounds[0] == gate.position:
                self._turn(tables)
            elif at < len(words):
                behind, executed = ahead(words, at, _ALL, 1, *shape)
                self._divide(words[at:], behind - at, tables)
                at = behind

    def _turn(self, tables: StaticTables | None) -> None:
        """Begin or end where the thread stands. (It has no tables if it has recorded nothing yet.)"""
        gate = self._gate
        if gate.opened and tables is not None:
            goes = self._goes.get(gate.position)
            if goes is not None:  # whether its last branch was taken
                self._feed.see(np.array([head(0, GOES_ON), goes], np.uint64).view(np.int64), tables)
            self._feed.release(tables)
        gate.turn()

    def _divide(self, words: npt.NDArray[np.int64], upto: int, tables: StaticTables) -> None:
        """Take in a record that a bound is in, instruction by instruction."""
        self._feed.release(tables)
        self._feed.intervals(1)
        self._feed.see(words, tables, upto=upto)
        self._feed.release(tables)
        self._feed.intervals(0)

    def release(self, tables: StaticTables) -> None:
        """See `Feed`."""
        self._feed.release(tables)

    def finish(self, tables: StaticTables) -> None:
        """See `Feed`."""
        self._feed.finish(tables)
