"""The blocks of a code cache written down for good: many at once, where they can be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import BlockStore
from livepro.engines.stream.blocks import ranges
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import all_made, numbered
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
    kind_of: Kinds | None = None
    n = len(slots)
    pcs, codes, all_steps = [0] * n, [b""] * n, [b""] * n
    kinds_of: list[Sequence[int] | npt.NDArray[np.uint16]] = [()] * n
    missing = np.ones(n, bool)
    for cache in caches:
        made = all_made(cache.batches)
        if made is None or cache.text is None or cache.module is None:
            continue
        kind_of = kind_of or Kinds(cache.text.describe)
        places = np.flatnonzero(unlooked)
        order = np.argsort(made.slots)
        at = np.minimum(np.searchsorted(made.slots[order], slots[places]), len(order) - 1)
        mine = made.slots[order[at]] == slots[places]
        places, rows = places[mine], made.blocks[order[at[mine]]]
        missing[places] = False
        offsets, lengths, sizes = rows[:, 0].copy(), rows[:, 3].copy(), rows[:, 4]
        steps, shapes = cache.text.instructions(offsets, lengths)
        kinds = numbered(cache.text, shapes, kind_of)
        code, text = cache.text.code[ranges(offsets, sizes)].tobytes(), steps.tobytes()
        begin = behind = 0
        addresses = (offsets + cache.module.start).tolist()
        ends = zip(np.cumsum(lengths).tolist(), np.cumsum(sizes).tolist(), strict=True)
        for place, address, (end, over) in zip(places.tolist(), addresses, ends, strict=True):
            pcs[place], codes[place], all_steps[place] = address, code[behind:over], text[begin:end]
            kinds_of[place] = kinds[begin:end]
            begin, behind = end, over
    assert kind_of is not None
    for place in np.flatnonzero(missing).tolist():
        pcs[place], codes[place], all_steps[place] = blocks.parts(int(slots[place]))
        kinds_of[place] = kind_of.split(codes[place], all_steps[place])
    all_kinds = np.concatenate(kinds_of).astype(np.uint16)
    mappings = [blocks.mappings[slot] for slot in slots.tolist()]
    store.extend_mixed(pcs, codes, all_steps, mappings, all_kinds, parse(dump(kind_of.instructions)))
