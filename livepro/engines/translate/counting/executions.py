"""How often a thread has executed its blocks, by the counters of their fragments."""

from __future__ import annotations

import numpy as np

from livepro.engines.recording import BlockStore
from livepro.engines.stream.recorder import Executed
from livepro.engines.translate.codecache import writing_blocks
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.window import Counts


def executions(space: CodeCache, counts: Counts) -> Executed:
    """What `counts` say, whose rows are slots of a code cache."""
    partial = [(slot, k, n) for (slot, k), n in counts.partial.items() if n]
    slots = np.union1d(counts.rows, np.array([slot for slot, _, _ in partial], np.int64))
    store = BlockStore()
    writing_blocks.write_down(store, space.registry, space.memory.all_caches, slots)
    times = np.zeros(len(slots), np.int64)
    times[np.searchsorted(slots, counts.rows)] = counts.times
    partial = [(int(np.searchsorted(slots, slot)), k, n) for slot, k, n in partial]
    return Executed(store.addresses, store.codes, store.sizes, times, partial)
