"""Basic block vectors out of the event stream: where threads' intervals end in it, and what each has.

The records say which instructions were executed, so that intervals are cut where an engine that counts
would cut them, to the instruction (`livepro.analyses.bbv`). What analyses see is cut behind the block in
which one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.spans.records import record_at
from livepro.model import Interval, ProcessResult

Cut = Callable[[int], int]
"""From a position in a thread's instructions to the next (greater) at which an interval ends."""


@njit(nogil=True, cache=True)
def walk(  # type: ignore[no-untyped-def]
    words, begin, least, counts, first, words_of, access_of, pattern, lanes_of
):
    """Add the instructions executed by the records from word `begin` on to `counts` (by block), up to the end
    of the record that makes them `least` or more. Returns the word behind the last one, the instructions, and
    that record's block (-1: there was none)."""
    at, executed, latest = begin, 0, -1
    while at < len(words) and executed < least:
        number, count, at = record_at(words, at, first, words_of, access_of, pattern, lanes_of)
        if number >= 0:
            counts[number] += count
            executed += count
            latest = number
    return at, executed, latest


Ended = tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Of an interval its instructions, the blocks executed, and the instructions executed in each."""


class _Thread:
    """Where a thread is: its `position`, where its interval `began` and what it has executed in it, by block;
    the intervals that have ended."""

    def __init__(self) -> None:
        self.position = 0
        self.began = 0
        self.counts = np.zeros(1024, np.int64)
        self.ended: list[Ended] = []

    def end(self, at: int) -> None:
        """The interval under way ends at a position."""
        blocks = np.flatnonzero(self.counts)
        self.ended.append((at - self.began, blocks, self.counts[blocks]))
        self.counts[:] = 0
        self.began = at


class IntervalCutter:
    """Cuts the streams of a run into intervals by the rule `cut`."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut
        self._threads: dict[StreamThread, _Thread] = {}

    def pieces(
        self, thread: StreamThread, words: npt.NDArray[np.int64], tables: StaticTables
    ) -> Iterator[tuple[int, int, int]]:
        """The next records of a thread in pieces, from one word up to another, and how many intervals end
        with each (at most one, but where a block is longer than an interval)."""
        state = self._threads.setdefault(thread, _Thread())
        blocks = len(tables.first)
        if len(state.counts) < blocks:
            state.counts = np.pad(state.counts, (0, blocks - len(state.counts)))
        begin = 0
        while begin < len(words):
            left = self._cut(state.position) - state.position
            at, executed, block = walk(
                *(words, begin, left, state.counts, tables.first, tables.words),
                *(tables.access, tables.pattern, tables.lanes),
            )
            over, ended = executed - left, 0
            state.position += min(executed, left)
            while over >= 0:
                # What of the block is behind the cut belongs to the next interval.
                if over:
                    state.counts[block] -= over
                state.end(state.position)
                ended += 1
                if not over:
                    break
                left = self._cut(state.position) - state.position
                state.counts[block] += over
                state.position += min(over, left)
                over -= left
            yield begin, at, ended
            begin = at

    def finish(self) -> list[StreamThread]:
        """All streams have ended: the threads whose last intervals end with them."""
        out = []
        for thread, state in self._threads.items():
            if state.position > state.began:
                state.end(state.position)
                out.append(thread)
        return out

    def ended(self, thread: StreamThread) -> list[Ended]:
        """The intervals of a thread that have ended."""
        state = self._threads.get(thread)
        return [] if state is None else list(state.ended)

    def told(self, image: StreamImage, process: ProcessResult) -> ProcessResult:
        """The process with the intervals of its threads."""
        rows = _rows(image, process)
        of_tid: dict[int, list[_Thread]] = {}
        for thread, state in self._threads.items():
            if thread.image is image:
                of_tid.setdefault(thread.thread.tid, []).append(state)
        threads = []
        for counts in process.threads:
            waiting = of_tid.get(counts.tid)
            found = waiting.pop(0).ended if waiting else []
            threads.append(counts._replace(intervals=tuple(_interval(rows, *one) for one in found)))
        return replace(process, threads=tuple(threads))


def _rows(image: StreamImage, process: ProcessResult) -> npt.NDArray[np.int64]:
    """The row in the process's table (int64) of each block of its streams; -1 for one never executed."""
    table = process.table
    known = {pair: row for row, pair in enumerate(zip(table.address.tolist(), table.code, strict=True))}
    pairs = zip(image.blocks.addresses, image.blocks.codes, strict=True)
    return np.array([known.get(pair, -1) for pair in pairs], np.int64)


def _interval(
    rows: npt.NDArray[np.int64],
    instructions: int,
    blocks: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> Interval:
    at = rows[blocks]
    order = np.argsort(at, kind="stable")
    return Interval(instructions, at[order], counts[order].astype(np.uint64))
