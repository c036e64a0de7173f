"""Images and threads between two looks: what was there the last time, and so what is new.

Counts are differences of whole counters: they add up exactly, whatever was
missed in between.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.live import Gone, LiveCounts, LiveThread
from livepro.engines.recording import ImageRecord
from livepro.live.catalogue import Catalogue, Ints
from livepro.live.sums import Recent, join
from livepro.tracee import TracedThread

UNKNOWN = -1
"""Of a block that has run but is not in the catalogue yet."""


@dataclass
class Tracked:
    """A thread: its counts when it was last looked at, by the image's block numbers."""

    thread: TracedThread
    number: int
    entries: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    partial: dict[tuple[int, int], int] = field(default_factory=dict)
    ran: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    instructions: int = 0
    simd: int = 0
    blocks: int = 0
    name: str = ""
    closed: bool = False
    recent: Recent = field(default_factory=Recent)

    def executions(self, rows: Ints) -> Ints:
        """How often the thread has executed blocks, when it was last looked at: one that has ended since
        has none of those that were added later."""
        known = rows < len(self.entries)
        out = np.zeros(len(rows), np.int64)
        out[known] = self.entries[rows[known]]
        return out

    def numbered(self, former: Ints | None, size: int) -> None:
        """Take over another numbering of `size` blocks: n is what was `former[n]`."""
        entries = np.zeros(size, np.int64)
        if former is not None:
            known = np.flatnonzero(former < len(self.entries))
            entries[known] = self.entries[former[known]]
            ran = np.zeros(size, np.bool_)
            ran[known] = self.ran[former[known]]
            self.ran = ran
            new = {old: now for now, old in enumerate(former.tolist())}
            self.partial = {(new[b], k): n for (b, k), n in self.partial.items() if b in new}
        else:
            self.partial = {}
            self.ran = np.zeros(size, np.bool_)
        self.entries = entries


class Move(NamedTuple):
    """What a thread has executed between two looks: the image's blocks `rows`, `times` each,
    and beginnings of blocks (`parts`, by catalogue number); `fresh` says which of `rows`
    were not in the catalogue then, `instructions` is the sum."""

    tracked: Tracked
    rows: Ints
    times: Ints
    parts: Ints
    part_times: Ints
    fresh: npt.NDArray[np.bool_]
    instructions: int


class Owed(NamedTuple):
    """Blocks (the image's `rows`, `times` each) that a thread had executed at a look (by its number in the
    history, and `seconds` since the run's start), and that nobody had described by then."""

    sample: int
    seconds: float
    tracked: Tracked
    rows: Ints
    times: Ints


class Image:
    """A process image: which block of the catalogue each of its own numbers stands for."""

    def __init__(self, record: ImageRecord) -> None:
        self.record = record
        self.threads: dict[TracedThread, Tracked] = {}
        self.numbering: object = None
        self.settled = False
        """Nothing will change any more, and all that ran is in the catalogue."""
        self.number: Ints = np.zeros(0, np.int64)
        self.simd: Ints = np.zeros(0, np.int64)
        self.blocks = 0
        """Distinct blocks that were executed."""
        self._ran: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._partial: dict[tuple[int, int], int] = {}
        self._waiting: Ints = np.zeros(0, np.int64)
        self._owed: list[Owed] = []
        self._counts: LiveCounts | None = None

    def prepare(self, counts: LiveCounts) -> None:
        """Make room for all blocks of `counts`, under its numbering."""
        size = len(counts.lengths)
        if counts.numbering is not self.numbering:
            former = counts.former if self.numbering is not None else None
            for tracked in self.threads.values():
                tracked.numbered(former, size)
            number = np.full(size, UNKNOWN, np.int64)
            simd = np.zeros(size, np.int64)
            if former is not None:
                known = np.flatnonzero(former < len(self.number))
                number[known] = self.number[former[known]]
                simd[known] = self.simd[former[known]]
            self.number, self.simd = number, simd
            ran = np.zeros(size, np.bool_)
            if former is not None:
                ran[known] = self._ran[former[known]]
            self._ran = ran
            self._waiting = np.flatnonzero(ran & (number == UNKNOWN))
            self._partial.clear()
            self._renumber_owed(former)
            self.numbering = counts.numbering
        elif size > len(self.number):
            more = size - len(self.number)
            self.number = np.concatenate((self.number, np.full(more, UNKNOWN, np.int64)))
            self.simd = np.concatenate((self.simd, np.zeros(more, np.int64)))
            self._ran = np.concatenate((self._ran, np.zeros(more, np.bool_)))
        self._counts = counts

    def advance(self, tracked: Tracked, live: LiveThread, catalogue: Catalogue) -> Move | None:
        """Take a thread's counts; returns what has been executed since the last time. None, and nothing is
        taken, where a block that was left early cannot be described just now: ask again later."""
        assert self._counts is not None
        before_all = tracked.instructions
        if len(tracked.ran) < len(self._ran):
            tracked.ran = np.concatenate((tracked.ran, np.zeros(len(self._ran) - len(tracked.ran), np.bool_)))
        try:
            parts, part_times = self._beginnings(tracked, live, catalogue)
        except Gone:
            return None
        lengths = self._counts.lengths
        former = tracked.entries
        moved = live.entries.copy()
        moved[: len(former)] -= former
        rows = np.flatnonzero(moved)
        times = moved[rows]
        tracked.instructions += int(times @ lengths[rows])
        tracked.simd += int(times @ self.simd[rows])
        tracked.entries = live.entries
        self._note(tracked, rows)
        tracked.closed = live.closed
        fresh = self.number[rows] == UNKNOWN
        return Move(tracked, rows, times, parts, part_times, fresh, tracked.instructions - before_all)

    def _beginnings(self, tracked: Tracked, live: LiveThread, catalogue: Catalogue) -> tuple[Ints, Ints]:
        """Executions that were left early since the last time, by catalogue number: of the
        blocks' beginnings."""
        if live.partial == tracked.partial:
            return _NONE, _NONE
        numbers: list[int] = []
        times: list[int] = []
        taken = dict(tracked.partial)
        for key in live.partial.keys() | tracked.partial.keys():
            more = live.partial.get(key, 0) - tracked.partial.get(key, 0)
            if more:
                number = self._beginning(key, catalogue)
                numbers.append(number)
                times.append(more)
                taken[key] = live.partial.get(key, 0)
        tracked.partial = taken
        self._note(tracked, np.unique(np.array([row for row, _ in taken], np.int64)))
        catalogue.flush()
        found, counts = np.array(numbers, np.int64), np.array(times, np.int64)
        tracked.instructions += int(counts @ catalogue.length[found])
        tracked.simd += int(counts @ catalogue.simd[found])
        return found, counts

    def _note(self, tracked: Tracked, rows: Ints) -> None:
        """Blocks of which a thread has executed at least one instruction."""
        tracked.blocks += int(np.count_nonzero(~tracked.ran[rows]))
        tracked.ran[rows] = True
        self.blocks += int(np.count_nonzero(~self._ran[rows]))
        self._ran[rows] = True

    def _beginning(self, key: tuple[int, int], catalogue: Catalogue) -> int:
        known = self._partial.get(key)
        if known is None:
            row, count = key
            number = int(self.number[row])
            if number == UNKNOWN:
                number = self._learn(row, catalogue)
            known = self._partial[key] = catalogue.prefix(number, count)
        return known

    def _learn(self, row: int, catalogue: Catalogue) -> int:
        assert self._counts is not None
        return catalogue.add(self.record.process.pid, self._counts.block(row))

    def learn(self, moves: Iterable[Move], catalogue: Catalogue, until: float) -> Ints:
        """Put blocks that ran into the catalogue, those of `moves` and those left over,
        until the thread's CPU time (`time.thread_time`) given; returns those that were new there."""
        assert self._counts is not None
        rows = join([self._waiting, *(move.rows[move.fresh] for move in moves)])
        rows = np.unique(rows[self.number[rows] == UNKNOWN]) if len(rows) else rows
        if not len(rows):
            self._waiting = rows
            return rows
        weight = np.zeros(len(rows), np.int64)
        for tracked in self.threads.values():
            weight += tracked.executions(rows)
        rows = rows[np.argsort(-weight * self._counts.lengths[rows], kind="stable")]
        done = 0
        for row in rows.tolist():
            try:
                self.number[row] = self._learn(row, catalogue)
            except Gone:
                break
            done += 1
            if done % 16 == 0 and time.thread_time() > until:
                break
        new, self._waiting = rows[:done], rows[done:]
        catalogue.flush()
        self.simd[new] = catalogue.simd[self.number[new]]
        for tracked in self.threads.values():
            tracked.simd += int(tracked.executions(new) @ self.simd[new])
        return new

    def owe(self, move: Move, sample: int, seconds: float) -> None:
        """Remember what of a move is of blocks that are still not in the catalogue."""
        unknown = self.number[move.rows] == UNKNOWN
        if unknown.any():
            self._owed.append(Owed(sample, seconds, move.tracked, move.rows[unknown], move.times[unknown]))

    def paid(self) -> list[tuple[Owed, int]]:
        """SIMD instructions of blocks that have been learnt since they were executed."""
        found = []
        owed = []
        for old in self._owed:
            sample, seconds, tracked, rows, times = old
            known = self.number[rows] != UNKNOWN
            simd = int(times[known] @ self.simd[rows[known]])
            if simd:
                found.append((old, simd))
            if not known.all():
                owed.append(Owed(sample, seconds, tracked, rows[~known], times[~known]))
        self._owed = owed
        return found

    def _renumber_owed(self, former: Ints | None) -> None:
        """Block `n` is what was `former[n]`; what ran is kept by every numbering."""
        if former is None or not self._owed:
            self._owed = []
            return
        now = np.full(int(former.max(initial=-1)) + 1, UNKNOWN, np.int64)
        now[former] = np.arange(len(former))
        owed = []
        for sample, seconds, tracked, rows, times in self._owed:
            kept = rows < len(now)
            kept[kept] = now[rows[kept]] != UNKNOWN
            owed.append(Owed(sample, seconds, tracked, now[rows[kept]], times[kept]))
        self._owed = owed

    def entries(self, rows: Ints) -> Ints:
        """Executions of blocks by all threads together."""
        out = np.zeros(len(rows), np.int64)
        for tracked in self.threads.values():
            out += tracked.executions(rows)
        return out

    def of_thread(self, tracked: Tracked, catalogue: Catalogue) -> tuple[Ints, Ints]:
        """All that a thread has executed, by catalogue number (which can repeat)."""
        rows = np.flatnonzero(tracked.entries)
        rows = rows[self.number[rows] != UNKNOWN]
        numbers = [self.number[rows]]
        times = [tracked.executions(rows)]
        for key, count in tracked.partial.items():
            numbers.append(np.array([self._beginning(key, catalogue)], np.int64))
            times.append(np.array([count], np.int64))
        return join(numbers), join(times)

    @property
    def waiting(self) -> int:
        """Blocks that ran but are not in the catalogue."""
        return len(self._waiting)


_NONE: Ints = np.zeros(0, np.int64)
