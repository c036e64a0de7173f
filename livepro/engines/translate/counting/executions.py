"""How often a thread has executed the blocks of its stream, by the counters of their fragments."""

from __future__ import annotations

import numpy as np

from livepro.engines.recording import BlockStore
from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.stream.recorder import Numbers, Partial
from livepro.engines.translate.codecache import writing_blocks
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.window import Counts
from livepro.isa.base import Isa


def executions(
    space: CodeCache, blocks: StreamBlocks, isa: Isa, counts: Counts
) -> tuple[Numbers, Numbers, Partial]:
    """The numbers of blocks, how often each was executed whole, and of which ones the first k instructions
    were how often (number, k, times). Blocks that no record names get numbers now."""
    partial = [(slot, k, n) for (slot, k), n in counts.partial.items() if n]
    slots = np.union1d(counts.rows, np.array([slot for slot, _, _ in partial], np.int64))
    store = BlockStore()
    writing_blocks.write_down(store, space.registry, space.memory.all_caches, slots)
    parts = zip(store.addresses, store.codes, store.sizes, strict=True)
    numbers = np.array([_number(blocks, isa, *part) for part in parts], np.int64)
    return (
        numbers[np.searchsorted(slots, counts.rows)],
        counts.times,
        [(int(numbers[np.searchsorted(slots, slot)]), k, n) for slot, k, n in partial],
    )


def _number(blocks: StreamBlocks, isa: Isa, address: int, code: bytes, sizes: bytes) -> int:
    known = blocks.number_of(address, code)
    if known is not None:
        return known
    flows, at = [], 0
    for size in sizes:
        flows.append(isa.describe(code[at : at + size]).flow)
        at += size
    last = at - sizes[-1]
    target = isa.decode_block(code[last:], address + last).target or 0
    return blocks.block(address, code, sizes, flows, target).number
