"""The blocks of a code cache written down for good: many at once, where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import BlockStore
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import AT, CODE_SIZE, LENGTH, PC, pieces
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.isa.kinds import Kinds, dump, parse
from livepro.model.arrays import ranges

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
    parts: list[_Part] = []
    missing = np.ones(len(slots), bool)
    for cache in caches:
        made = cache.made
        if made is None or cache.text is None:
            continue
        kind_of = kind_of or Kinds(cache.text.describe)
        places = np.flatnonzero(unlooked)
        order = np.argsort(made.slots)
        at = np.minimum(np.searchsorted(made.slots[order], slots[places]), len(order) - 1)
        mine = made.slots[order[at]] == slots[places]
        places, rows = places[mine], made.blocks[order[at[mine]]]
        missing[places] = unlooked[places] = False  # (another generation may have it, too)
        offsets, at, lengths, sizes = (rows[:, column].copy() for column in (PC, AT, LENGTH, CODE_SIZE))
        told = cache.text.instructions(at, lengths, sizes, kind_of)
        steps, code = pieces(told.steps, lengths), pieces(told.code, sizes)
        parts.append(_Part(places, offsets + cache.extent[0], code, steps, lengths, told.kinds))
    assert kind_of is not None
    rest = np.flatnonzero(missing)
    looked = [blocks.parts(slot) for slot in slots[rest].tolist()]
    pcs = [pc for pc, _, _ in looked]
    codes, steps = [code for _, code, _ in looked], [sizes for _, _, sizes in looked]
    numbers = [number for _, code, sizes in looked for number in kind_of.split(code, sizes)]
    lengths = np.array([len(each) for each in steps], np.int64)
    parts.append(_Part(rest, np.array(pcs, np.int64), codes, steps, lengths, np.array(numbers, np.uint16)))
    order = np.argsort(np.concatenate([part.places for part in parts]))
    lengths = np.concatenate([part.lengths for part in parts])
    kinds = np.concatenate([part.kinds for part in parts])
    begins = np.cumsum(lengths) - lengths
    in_order = order.tolist()
    all_codes = [code for part in parts for code in part.codes]
    all_steps = [step for part in parts for step in part.steps]
    store.extend_mixed(
        np.concatenate([part.pcs for part in parts])[order].tolist(),
        [all_codes[i] for i in in_order],
        [all_steps[i] for i in in_order],
        [blocks.mappings[slot] for slot in slots.tolist()],
        kinds[ranges(begins[order], lengths[order])],
        parse(dump(kind_of.instructions)),
    )


class _Part(NamedTuple):
    """Some of the blocks: their places among all, addresses and bytes, of their instructions the sizes, how
    many there are, and the kinds (uint16, of all instructions of all blocks)."""

    places: Array
    pcs: Array
    codes: list[bytes]
    steps: list[bytes]
    lengths: Array
    kinds: npt.NDArray[np.uint16]
