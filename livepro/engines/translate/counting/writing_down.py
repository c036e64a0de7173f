"""What threads have counted by slot, as rows of an image's own table of blocks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from livepro.engines.control import SnapshotRecord
from livepro.engines.recording import ImageRecord
from livepro.engines.translate.codecache.code_cache import CodeCache


def write_down(record: ImageRecord, space: CodeCache, snapshots: Iterable[SnapshotRecord]) -> None:
    """Turn counter slots into rows of the image's own table, in the image's tallies and in snapshots."""
    used: set[int] = set()
    taken = [
        (snapshot.counts, tally)
        for snapshot in snapshots
        for tally in record.tallies
        if tally in snapshot.counts
    ]
    for counts, tally in taken:
        used.update(counts[tally].rows.tolist(), (slot for slot, _ in counts[tally].partial))
    lengths = space.registry.lengths()
    in_intervals = np.zeros(len(lengths), bool)
    for tally in record.tallies:
        tally.settle(lengths)
        used.update(slot for slot, count in tally.entries.items() if count)
        used.update(slot for slot, _ in tally.partial)
        for interval in tally.intervals:
            in_intervals[interval.rows] = True
    used.update(np.flatnonzero(in_intervals).tolist())
    rows = space.registry.write_down(record.store, np.array(sorted(used), np.int64))
    labels = space.generated.labels
    record.store.labels = {rows[slot]: label for slot, label in labels.items() if slot in rows}
    record.former = np.zeros(len(rows), np.int64)
    record.former[list(rows.values())] = list(rows)
    for tally in record.tallies:
        tally.rename(rows)
    for counts, tally in taken:
        counts[tally] = counts[tally].renamed(rows)
