"""What threads have counted by slot, as rows of an image's own table of blocks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from livepro.engines.control import SnapshotRecord
from livepro.engines.recording import ImageRecord
from livepro.engines.translate.codecache import writing_blocks
from livepro.engines.translate.codecache.code_cache import CodeCache


def write_down(record: ImageRecord, space: CodeCache, snapshots: Iterable[SnapshotRecord]) -> None:
    """Turn counter slots into rows of the image's own table, in the image's tallies and in snapshots."""
    taken = [
        (snapshot.counts, tally)
        for snapshot in snapshots
        for tally in record.tallies
        if tally in snapshot.counts
    ]
    lengths = space.registry.lengths()
    for tally in record.tallies:
        tally.settle(lengths)
    used = np.zeros(len(lengths), bool)
    for each in (*(counts[tally] for counts, tally in taken), *(t.raw_counts() for t in record.tallies)):
        used[each.rows] = True
        used[[slot for slot, _ in each.partial]] = True
    for tally in record.tallies:
        for interval in tally.intervals:
            used[interval.rows] = True
    former = np.flatnonzero(used)
    writing_blocks.write_down(record.store, space.registry, space.memory.all_caches, former)
    record.store.labels = {
        int(np.searchsorted(former, slot)): label
        for slot, label in space.generated.labels.items()
        if slot < len(used) and used[slot]
    }
    record.former = former
    for tally in record.tallies:
        tally.rename(former)
    for counts, tally in taken:
        counts[tally] = counts[tally].renamed(former)
