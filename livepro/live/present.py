"""The counts so far as a report, while the run goes on."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from livepro.engines.live import Gone, LiveCounts
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.live.collector import LiveEngine
from livepro.model import RunResult
from livepro.results import build_processes

_PATIENCE = 5.0
"""Seconds to wait for an engine that is busy with the counts of one image."""


def present(
    engine: LiveEngine, isa: Isa, command: Sequence[str], seconds: float, *, demangle: bool = True
) -> RunResult:
    """What has been executed so far, `seconds` after the start. Nobody is stopped for it: each
    thread's counts are of a moment of its own. Basic block vectors are not in it."""
    images = []
    for record in list(engine.images):
        image = _image(engine, record)
        if image.tallies:
            images.append(image)
    return RunResult(
        engine=engine.name,
        command=tuple(command),
        exit=None,
        wall_seconds=seconds,
        interval_size=0,
        processes=build_processes(images, isa, demangle=demangle),
        warnings=tuple(engine.warnings),
    )


def _image(engine: LiveEngine, record: ImageRecord) -> ImageRecord:
    """A record of the blocks that ran and the threads that ran them."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        counts = engine.live(record)
        if counts is not None:
            for live in counts.threads:
                if engine.tracer.threads.get(live.thread.tid) is live.thread:
                    live.thread.remember_name()  # it may have got one since it began
            try:
                return _described(record, counts)
            except Gone:
                pass
        time.sleep(0.01)
    raise LiveproError(f"The counts of process {record.process.pid} cannot be read.", "Try again.")


def _described(record: ImageRecord, counts: LiveCounts) -> ImageRecord:
    image = ImageRecord(record.process)
    ran = np.zeros(len(counts.lengths), np.bool_)
    for live in counts.threads:
        ran |= live.entries > 0
        ran[[row for row, _ in live.partial]] = True
    store = image.store
    rows: dict[int, int] = {}
    for row in np.flatnonzero(ran).tolist():
        block = counts.block(row)
        rows[row] = store.put(block.address, block.code, block.sizes, block.module, block.offset)
        if block.label is not None:
            store.labels[rows[row]] = block.label
    for live in counts.threads:
        tally = ThreadTally(live.thread, store, None)
        found = np.flatnonzero(live.entries > 0)
        times = live.entries[found].tolist()
        tally.entries = defaultdict(int, zip((rows[n] for n in found.tolist()), times, strict=True))
        tally.partial = defaultdict(int, {(rows[n], k): t for (n, k), t in live.partial.items()})
        tally.rep_iterations = live.rep_iterations
        image.tallies.append(tally)
    return image
