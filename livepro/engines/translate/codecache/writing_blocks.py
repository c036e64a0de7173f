"""The blocks of a code cache written down for good: many at once, where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import BlockStore
from livepro.engines.stream.blocks import ranges
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.isa.kinds import Kinds, dump, parse

FEW = 64
"""Blocks that are as well written down one by one."""

Array = npt.NDArray[np.int64]


def write_down(store: BlockStore, registry: BlockRegistry, caches: Sequence[Cache], slots: Array) -> None:
    """Append the blocks that count in `slots` (ascending) to a store, in that order; `caches` are those that
    they are in."""
    behind = 0
    for restored in (*registry.restored, None):
        first = len(registry.starts) if restored is None else restored.first
        _append(store, registry, caches, slots[(slots >= behind) & (slots < first)])
        if restored is None:
            break
        persisted, module = restored.persisted, restored.module
        behind = first + len(persisted)
        mine = slots[(slots >= first) & (slots < behind)]
        pcs, codes, steps, kinds = persisted.rows(persisted.row_of[mine - first])
        store.extend([pc + module.start for pc in pcs], codes, steps, module, kinds, persisted.instructions)


def _append(store: BlockStore, blocks: BlockRegistry, caches: Sequence[Cache], slots: Array) -> None:
    """Append blocks that have not been put back."""
    unlooked = blocks.unlooked(slots)
    if int(unlooked.sum()) < FEW:
        for slot in slots.tolist():
            store.append(*blocks.parts(slot), blocks.mappings[slot])
        return
    found: dict[int, tuple[int, bytes, bytes, Sequence[int] | npt.NDArray[np.uint16]]] = {}
    kind_of: Kinds | None = None
    for cache in caches:
        if not cache.batches or cache.text is None or cache.module is None:
            continue
        kind_of = kind_of or Kinds(cache.text.describe)
        made = np.concatenate([b.slot + np.arange(len(b.blocks)) for b in cache.batches])
        order = np.argsort(made)
        place = np.searchsorted(made[order], slots[unlooked])
        place[place == len(made)] = 0
        mine = made[order][place] == slots[unlooked]
        rows = np.concatenate([batch.blocks for batch in cache.batches])[order][place[mine]]
        offsets, lengths, sizes = rows[:, 0].copy(), rows[:, 3].copy(), rows[:, 4]
        steps, shapes = cache.text.instructions(offsets, lengths)
        by_shape = np.zeros(int(shapes.max(initial=0)) + 1, np.uint16)
        for shape in np.flatnonzero(np.bincount(shapes)).tolist():
            by_shape[shape] = kind_of.number(cache.text.described(shape))
        kinds = by_shape[shapes]
        code = cache.text.code[ranges(offsets, sizes)].tobytes()
        ends, behind = np.cumsum(lengths).tolist(), np.cumsum(sizes).tolist()
        text, at, begin = steps.tobytes(), 0, 0
        addresses = (offsets + cache.module.start).tolist()
        for slot, address, end, over in zip(
            slots[unlooked][mine].tolist(), addresses, ends, behind, strict=True
        ):
            found[slot] = address, code[begin:over], text[at:end], kinds[at:end]
            at, begin = end, over
    assert kind_of is not None
    rows_of = []
    for slot in slots.tolist():
        known = found.get(slot)
        if known is None:
            address, code, sizes_ = blocks.parts(slot)
            known = address, code, sizes_, kind_of.split(code, sizes_)
        rows_of.append(known)
    pcs, codes, all_steps = (list(map(itemgetter(i), rows_of)) for i in range(3))
    all_kinds = np.concatenate([np.asarray(known[3], np.uint16) for known in rows_of])
    mappings = [blocks.mappings[slot] for slot in slots.tolist()]
    store.extend_mixed(pcs, codes, all_steps, mappings, all_kinds, parse(dump(kind_of.instructions)))
