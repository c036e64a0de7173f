"""The counts of translated threads while they run: straight from the memory they share with livepro."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from livepro.engines.live import LiveCounts, RawBlock, limited, stored
from livepro.engines.recording import ImageRecord, located
from livepro.engines.translate import layout
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.threads.table import ThreadTable
from livepro.tracee import TracedThread

_REP_ITERATIONS = layout.REP_ITERATIONS // 8


def translated(
    record: ImageRecord,
    table: ThreadTable,
    known: Container[TracedThread],
) -> LiveCounts | None:
    """The counts of one image, `known` threads left out; None while the engine is turning its
    counters into a table, or taking a thread's down: ask again later."""
    space = table.spaces.get(record.process)
    if space is None:
        # Not begun, between counters and table, or settled.
        return stored(record, known) if record.settled else None
    epoch = space.registry.epoch
    lengths = space.registry.lengths()[: len(space.registry.mappings)]  # of what is complete
    threads = []
    for tally in list(record.tallies):
        if tally.thread in known or tally.window.over:
            continue
        closed = tally.closed  # before the counts: they do not change behind it
        state = table.states.get(tally.thread.tid)
        entries = np.zeros(len(lengths), np.int64)
        iterations = tally.rep_iterations
        if state is not None and state.tally is tally:
            entries += state.counters.all(len(lengths))
            iterations += int(state.words[_REP_ITERATIONS])
        threads.append(limited(tally, entries, iterations, closed=closed))
    if table.spaces.get(record.process) is not space or epoch % 2 or space.registry.epoch != epoch:
        return None  # or counts were being moved
    return LiveCounts(space, None, lengths, lambda slot: _block(space, slot), tuple(threads), False)


def _block(space: CodeCache, slot: int) -> RawBlock:
    pc, code, sizes = space.registry.parts(slot)
    label = space.generated.labels.get(slot)
    return RawBlock(pc, code, sizes, *located(pc, space.registry.mappings[slot]), label)
