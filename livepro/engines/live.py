"""The counts of a process image while it runs, read from another thread than the engine's.

Nobody is stopped for it: what is read was true a moment ago, and may be ahead of a thread
by the block that the thread is in.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.model import CodeLabel
from livepro.tracee import TracedThread


class Progress(NamedTuple):
    """How far a run has come: instructions retired so far by all threads, threads
    and processes alive, seconds since the start."""

    instructions: int
    threads: int
    processes: int
    seconds: float


class RawBlock(NamedTuple):
    """A block as engines keep it: for `sizes`, `module`, `offset` and `label` see `BlockStore`."""

    address: int
    code: bytes
    sizes: bytes
    module: str
    offset: int
    label: CodeLabel | None = None


class Gone(LookupError):
    """The engine is just giving up what it knew of a block: the image's record will describe it."""


class LiveThread(NamedTuple):
    """What a thread has executed so far: complete executions of each block (int64, by block number) and
    (block number, k) -> executions of its first k instructions only. What resets and pauses
    leave out is not in it (`limited`: there is such). Counts may go down a little when a
    thread turns out to have left a block early. `closed` says that it will not change any more."""

    thread: TracedThread
    entries: npt.NDArray[np.int64]
    partial: dict[tuple[int, int], int]
    rep_iterations: int
    closed: bool
    limited: bool

    def instructions(self, lengths: npt.NDArray[np.int64]) -> int:
        """Instructions in all this, given the length of each block."""
        return int(self.entries @ lengths) + sum(k * times for (_, k), times in self.partial.items())


class LiveCounts(NamedTuple):
    """One image at one moment.

    `numbering` is the object that numbers its blocks: where it is another one than
    last time, block n is what was block `former[n]` (all were new if that is None).
    `lengths` (int64) are instructions by block number; `block` describes one, or raises `Gone`.
    `settled` says that nothing here will change any more.
    """

    numbering: object
    former: npt.NDArray[np.int64] | None
    lengths: npt.NDArray[np.int64]
    block: Callable[[int], RawBlock]
    threads: tuple[LiveThread, ...]
    settled: bool


def stored(record: ImageRecord, known: Container[TracedThread] = ()) -> LiveCounts:
    """The counts of an image whose tallies number blocks as its store does; see `Engine.live`."""
    store = record.store
    settled = record.settled  # before the counts: they do not change behind it
    lengths = store.length_array()
    return LiveCounts(
        numbering=store,
        former=record.former,
        lengths=lengths,
        block=lambda row: RawBlock(
            store.addresses[row],
            store.codes[row],
            store.sizes[row],
            store.modules[row],
            store.offsets[row],
            store.labels.get(row),
        ),
        threads=tuple(
            tallied(tally, len(lengths), closed=settled)
            for tally in list(record.tallies)
            if tally.thread not in known and not tally.window.over
        ),
        settled=settled,
    )


def tallied(tally: ThreadTally, blocks: int, *, closed: bool) -> LiveThread:
    """A tally's counts as an array. Blocks numbered `blocks` or above, newer than the
    array, are left for the next time."""
    entries = np.zeros(blocks, np.int64)
    return limited(tally, entries, tally.rep_iterations, closed=closed)


def limited(
    tally: ThreadTally, entries: npt.NDArray[np.int64], rep_iterations: int, *, closed: bool
) -> LiveThread:
    """The counts of a thread, of which `entries` and `rep_iterations` have been read elsewhere,
    with what is in its tally, and without what its window leaves out."""
    window = tally.window
    base, held = window.base, window.held
    if held is None:
        held = tally.final
    if held is None:
        add_counts(entries, tally.entries)
        partial = dict(tally.partial)
    else:
        entries[:] = 0
        _add(entries, held.rows, held.times)
        partial, rep_iterations = dict(held.partial), held.rep_iterations
    _add(entries, base.rows, -base.times)
    for key, times in base.partial.items():
        partial[key] = partial.get(key, 0) - times
    partial = {key: times for key, times in partial.items() if times and key[0] < len(entries)}
    iterations = rep_iterations - base.rep_iterations
    return LiveThread(tally.thread, entries, partial, iterations, closed, not window.whole)


def add_counts(entries: npt.NDArray[np.int64], counts: dict[int, int]) -> None:
    """Add the counts of a dictionary that another thread may be changing."""
    counts = dict(counts)  # one step of the interpreter's
    if counts:
        rows = np.fromiter(counts.keys(), np.int64, len(counts))
        _add(entries, rows, np.fromiter(counts.values(), np.int64, len(counts)))


def _add(entries: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> None:
    known = rows < len(entries)
    entries[rows[known]] += times[known]
