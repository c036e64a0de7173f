"""A thread's stream between two positions, made spans: the region of a run that is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamThread
from livepro.events.spans.dividing import ALL, NONE, Bounds, Records, ahead
from livepro.events.spans.feeding import Feed, Reader, Slice, Taker
from livepro.events.spans.flattening import Turns
from livepro.events.spans.listing import Listing

Noted = npt.NDArray[np.uint8]


class _Gate(Bounds):
    """Passes spans on while it is open. `end` is the position behind the record that is divided."""

    def __init__(self, taker: Taker, *, opened: bool, executed: int) -> None:
        super().__init__(opened=opened, executed=executed)
        self._taker = taker
        self.end = 0

    def take(self, part: Slice) -> None:
        """See `Taker`."""
        if self.opened:
            self._taker.take(part)

    def cut(self, retired: int) -> None:
        """See `Taker`: one instruction more of a record that a bound is in."""
        self.moved(retired)
        if self.position != self.end:  # whose branch may have to be told yet
            self.turn()


class Regions:
    """What is counted of a run, as a consumer is told of it (`livepro.events.pump.Regional`), and the feeds
    that keep to it."""

    def __init__(self) -> None:
        self._waiting = False
        self._told: list[tuple[Mapping[StreamThread, int], Mapping[StreamThread, int]]] = []
        self._feeds: dict[StreamThread, RegionFeed] = {}
        self._seen: dict[StreamThread, int] = {}

    def keeps(self, *, waiting: bool) -> None:
        """See `Regional`."""
        self._waiting = waiting

    def feed(
        self, thread: StreamThread, taker: Taker, listing: Listing, turns: Turns, noted: Noted, size: int = 0
    ) -> Feed | RegionFeed:
        """What feeds a thread's records to a taker: all of them if they are taken in intervals (of `size`
        instructions), else those that are counted."""
        if size:
            return Feed(taker, listing, turns, noted, size, _reading(taker))
        seen = self._seen.get(thread, 0)
        feed = self._feeds[thread] = RegionFeed(
            taker, listing, turns, noted, waiting=self._waiting, executed=seen
        )
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

    def restart(
        self,
        positions: Mapping[StreamThread, int],
        tables: Callable[[StreamThread], StaticTables],
        *,
        counting: bool,
    ) -> None:
        """See `Regional`: there are no feeds any more."""
        for thread, feed in self._feeds.items():
            self._seen[thread] = feed.close(tables(thread))
        self._feeds.clear()
        self._waiting, self._told = True, [(positions, {})] if counting else []


class RegionFeed:
    """Feeds one thread's records to a taker as `Feed` does, but those of the region only. If it is `waiting`,
    that has yet to begin. The thread has `executed` so many instructions of which it has seen no records.

    Until there is a bound, or if none comes, nothing has to be known of where the thread is."""

    def __init__(
        self,
        taker: Taker,
        listing: Listing,
        turns: Turns,
        noted: Noted,
        *,
        waiting: bool,
        executed: int = 0,
    ) -> None:
        self._gate = _Gate(taker, opened=not waiting, executed=executed)
        self._feed = Feed(self._gate, listing, turns, noted, reader=_reading(taker))
        self._bounded = waiting

    @property
    def instructions(self) -> int:
        """Instructions of the region that have been taken in."""
        return self._gate.counted if self._bounded else self._feed.instructions

    def _watch(self, tables: StaticTables | None) -> None:
        """From now on it is known where the thread is."""
        if not self._bounded:
            if tables is not None:
                self._feed.release(tables)
            self._gate.moved(self._feed.instructions)
            self._bounded = True

    def close(self, tables: StaticTables) -> int:
        """Nothing more comes. Returns how many instructions the thread has executed, as far as its records
        have been seen."""
        self._watch(tables)
        self._feed.release(tables)
        return self._gate.position

    def bound(self, position: int, goes: int | None, tables: StaticTables | None) -> None:
        """See `Bounds.add`."""
        self._watch(tables)
        if self._gate.add(position, goes) and not self._gate.waits:
            self._turn(NONE, tables)

    def see(self, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """Take in the next records."""
        if not self._bounded:
            self._feed.see(words, tables)
            return
        gate, at = self._gate, 0
        shape = tables.first, tables.words, tables.access, tables.pattern, tables.lanes
        while at < len(words):
            if gate.left == 0:
                self._turn(words[at:], tables)
            behind, executed = ahead(words, at, gate.left, ALL, *shape)
            if gate.opened and behind > at:
                self._feed.see(words[at:], tables, upto=behind - at)
            gate.moved(executed)
            at = behind
            if gate.left and at < len(words):
                behind, executed = ahead(words, at, ALL, 1, *shape)
                gate.end = gate.position + executed
                self._divide(words[at:], behind - at, tables)
                at = behind
        if gate.left == 0 and not gate.waits:
            self._turn(NONE, tables)

    def _turn(self, following: Records, tables: StaticTables | None) -> None:
        """Begin or end where the thread stands: `following` is what it has executed from there on, if
        anything. (It has no tables if it has recorded nothing yet.)"""
        gate = self._gate
        if gate.opened and tables is not None:
            ending = gate.ending(following, tables)
            if ending is not None:
                self._feed.see(ending, tables)
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


def _reading(taker: Taker) -> Reader | None:
    """A taker that takes in records by itself, as that; None for another."""
    return taker if isinstance(taker, Reader) else None
