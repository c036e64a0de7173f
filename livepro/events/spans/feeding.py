"""A thread's stream, chunk by chunk, made spans; whoever takes them is told where intervals end."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from livepro.engines.stream import FLAGS_SHIFT, GOES_ON, NUMBER
from livepro.engines.stream.blocks import FLOWS, StaticTables
from livepro.events.spans.flattening import (
    BRANCHES,
    CUTS,
    EVENTS,
    HELD,
    INSTRUCTION,
    RETIRED,
    SIZE,
    SPANS,
    TOTAL,
    Events,
    Turns,
    flatten,
)
from livepro.events.spans.listing import Listing
from livepro.model import Flow

CONDITIONAL = np.array([flow is Flow.BRANCH for flow in FLOWS], np.uint8)
"""For `Feed`: conditional branches are noted, and no other transfers."""
_HEAD = 2
"""Words of a record that say where it is executed."""


class Slice(NamedTuple):
    """Spans `begin` to `end`, with `executed` events, and branches `first_branch` to `last_branch`."""

    events: Events
    begin: int
    end: int
    first_branch: int
    last_branch: int
    executed: int


class Taker(Protocol):
    """Who gets the spans of a thread."""

    def take(self, part: Slice) -> None:
        """The next spans. Their arrays are whole until the next but one are taken, of any thread."""

    def cut(self, retired: int) -> None:
        """An interval has ended, of so many instructions."""


@runtime_checkable
class Reader(Taker, Protocol):
    """A taker that takes in records by itself, where no interval can end among them."""

    def read(
        self,
        words: npt.NDArray[np.int64],
        upto: int,
        cursor: npt.NDArray[np.int64],
        final: bool,
        counters: npt.NDArray[np.int64],
        noted: npt.NDArray[np.uint8],
        events: Events,
    ) -> bool:
        """Take in the records from where the `cursor` is to those that begin before the word `upto`, as
        `flatten` does. Whether the last one must wait. `events` are empty, and empty again at the return."""


def flattened(
    words: npt.NDArray[np.int64],
    upto: int,
    cursor: npt.NDArray[np.int64],
    final: bool,
    listing: Listing,
    counters: npt.NDArray[np.int64],
    tables: StaticTables,
    noted: npt.NDArray[np.uint8],
    events: Events,
) -> bool:
    """See `flatten`: adds the spans of records to `events`. Whether there is more to do."""
    return bool(
        flatten(
            *(words, upto, cursor, final, listing.mica, counters),
            *(tables.first, tables.words, tables.address.view(np.int64), tables.bytes, tables.flow, noted),
            *(tables.access, tables.pattern, tables.size, tables.kind, tables.lanes),
            *listing.arrays(),
            *events.arrays(),
        )
    )


class Feed:
    """Feeds one thread's records to a taker, in intervals of `size` instructions (0: of the whole run).

    Branches of the flows `noted` (by index in `FLOWS`) are told with where they went. The `reader`, if there
    is one, is who takes spans in the end.
    """

    def __init__(
        self,
        taker: Taker,
        listing: Listing,
        turns: Turns,
        noted: npt.NDArray[np.uint8],
        size: int = 0,
        reader: Reader | None = None,
    ) -> None:
        self._taker = taker
        self._listing = listing
        self._turns = turns
        self._noted = noted
        self._reader = reader
        self._cursor = np.zeros(6, np.int64)
        self._counters = np.array([0, size, 0], np.int64)
        self._rest = np.zeros(0, np.int64)
        self._held = False
        self._released = -1

    @property
    def instructions(self) -> int:
        """All that have retired in the spans so far."""
        return int(self._counters[TOTAL])

    def intervals(self, size: int) -> None:
        """From here on intervals are of so many instructions (0: there are none)."""
        self._counters[SIZE], self._counters[RETIRED] = size, 0

    def see(
        self,
        words: npt.NDArray[np.int64],
        tables: StaticTables,
        *,
        upto: int | None = None,
        final: bool = False,
    ) -> None:
        """Take in the next records, up to the word `upto`: what is behind tells where they lead, no more.
        `final` says that there will be no more."""
        end = len(words) if upto is None else upto
        self._turns.give(self.flush)
        self._listing.update(tables)
        if self._released >= 0 and len(words):
            self._resolve(words, tables)
        rest = self._rest
        if len(rest):  # a record whose branch goes where the next one is
            self._flatten(np.concatenate((rest, words[:_HEAD])), len(rest), tables, final=final)
        if len(words):
            self._flatten(words, end, tables, final=final)
            self._rest = words[self._cursor[0] : end].copy() if self._held else words[:0]

    def _flatten(self, words: npt.NDArray[np.int64], upto: int, tables: StaticTables, *, final: bool) -> None:
        """Add the events of the records before the word `upto`."""
        self._cursor[:] = 0
        self._cursor[INSTRUCTION] = -1
        if self._reader is not None and not self._counters[SIZE]:
            self.flush()  # what came before
            self._held = self._reader.read(
                words, upto, self._cursor, final, self._counters, self._noted, self._turns.now
            )
            return
        while True:
            events = self._turns.now
            listing, counters, noted = self._listing, self._counters, self._noted
            more = flattened(words, upto, self._cursor, final, listing, counters, tables, noted, events)
            self._held = bool(events.out[HELD])
            if not more:
                return
            self.flush()

    def release(self, tables: StaticTables) -> None:
        """Give the taker the spans of all that has been seen. A branch whose outcome is not known yet is
        told with the spans that come."""
        self._turns.give(self.flush)
        rest = self._rest
        if len(rest):
            self._flatten(rest, len(rest), tables, final=True)
            self._rest = rest[:0]
            self._released = int(tables.first[(rest[0] & NUMBER) + 1]) - 1
        self.flush()

    def _resolve(self, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """The branch whose record was released goes where the next record is."""
        events, i = self._turns.now, self._released
        self._released = -1
        at = int(events.out[BRANCHES])
        if at == len(events.branches):
            self.flush()
            events, at = self._turns.now, 0
        head, address_of = int(words[0]), tables.address.view(np.int64)
        goes = words[1] if head >> FLAGS_SHIFT & GOES_ON else address_of[tables.first[head & NUMBER]]
        events.branches[at] = i
        events.taken[at] = goes != address_of[i] + tables.bytes[i]
        events.targets[at] = goes
        events.out[BRANCHES] = at + 1

    def flush(self) -> None:
        """Give the taker the spans that there are."""
        events = self._turns.now
        if not events.out[SPANS] and not events.out[BRANCHES]:
            return  # and no change of turns: the other one's events may be seen still
        begin = first_branch = before = 0
        for end, branch, retired, count in events.cuts[: events.out[CUTS]].tolist():
            self._take(Slice(events, begin, end, first_branch, branch, count - before))
            self._taker.cut(retired)
            begin, first_branch, before = end, branch, count
        end, branch, count = (int(events.out[which]) for which in (SPANS, BRANCHES, EVENTS))
        self._take(Slice(events, begin, end, first_branch, branch, count - before))
        self._turns.change()

    def _take(self, part: Slice) -> None:
        if part.executed or part.last_branch > part.first_branch:
            self._taker.take(part)

    def finish(self, tables: StaticTables) -> None:
        """The stream has ended: what is under way becomes the last interval, even if it is empty."""
        self.see(np.zeros(0, np.int64), tables, final=True)
        self.flush()
        if self._counters[SIZE]:
            self._taker.cut(int(self._counters[RETIRED]))
            self._counters[RETIRED] = 0
