"""What a whole run gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.model.blocks import BlockTable
from livepro.model.counts import ThreadCounts
from livepro.model.sampling import SamplingResult
from livepro.model.timeline import Timeline


@dataclass(frozen=True)
class ProcessResult:
    """One image of one process: an exec ends an image and begins the next.

    `image` counts the images of the same pid that livepro saw, from 0.
    `exit` is the status as a shell reports it (128 + n for signal n), or None
    while it runs or when the image ended by exec. `threads` are in order of
    their start, the first thread first.
    """

    pid: int
    ppid: int
    image: int
    command: tuple[str, ...]
    machine: str
    exit: int | None
    table: BlockTable
    threads: tuple[ThreadCounts, ...]

    @property
    def instructions(self) -> int:
        """Instructions retired by all threads together."""
        return sum(t.instructions(self.table) for t in self.threads)


class SnapshotThread(NamedTuple):
    """What one thread had executed when a snapshot was taken.

    `process` and `thread` are its places in `RunResult.processes` and in that
    process's `threads`; `rows` (int64) are the table rows of the blocks that it had
    run, `entries` (uint64, same shape) how often; `partial` and `rep_iterations`
    as in `ThreadCounts`.
    """

    process: int
    thread: int
    rows: npt.NDArray[np.int64]
    entries: npt.NDArray[np.uint64]
    partial: npt.NDArray[np.int64]
    rep_iterations: int

    def counts(self, processes: tuple[ProcessResult, ...]) -> ThreadCounts:
        """As the counts of a whole run, for the same analyses."""
        process = processes[self.process]
        thread = process.threads[self.thread]
        entries = np.zeros(len(process.table), np.uint64)
        entries[self.rows] = self.entries
        return ThreadCounts(thread.tid, thread.name, entries, self.partial, self.rep_iterations)


class Snapshot(NamedTuple):
    """The counts at one moment of the run, `seconds` after its start: of each thread that had
    begun, since the last of `resets` resets, without pauses."""

    label: str
    seconds: float
    resets: int
    threads: tuple[SnapshotThread, ...]


@dataclass(frozen=True)
class RegionResult:
    """What became of a region of interest: `asked` says which part of the run was to be counted,
    `began` whether that was reached, `ended` whether counting ended where it was to end."""

    asked: str
    began: bool
    ended: bool


@dataclass(frozen=True)
class RunResult:
    """A run: every process, in order of start. `exit` is the command's status
    as a shell reports it (None: it was let go while it ran), `interval_size` the
    basic block vector interval in instructions (0: none), `stats` the engine's own
    figures (stops, blocks ...), `warnings` what the user should know about the counts, `snapshots`
    those taken, in order, `region` the part of the run that was to be counted (None: all),
    `sampling` the windows that it was measured in (None: from beginning to end), `timeline` how fast
    it went meanwhile (None: that was not asked for), `analyses` what each analysis of the event stream
    told: a dictionary for each process image, with its `pid`, `image`, `command`, the `result` and the
    `report`, its lines."""

    engine: str
    command: tuple[str, ...]
    exit: int | None
    wall_seconds: float
    interval_size: int
    processes: tuple[ProcessResult, ...]
    stats: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    region: RegionResult | None = None
    sampling: SamplingResult | None = None
    timeline: Timeline | None = None
    analyses: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def instructions(self) -> int:
        """Instructions retired by all threads of all processes together."""
        return sum(p.instructions for p in self.processes)
