"""What is known of a module's addresses: a hashed table by their offsets in the module."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.tables import (
    ENTRIES,
    FLAGS,
    FRAGMENT,
    GONE,
    INDEX_COLUMNS,
    LANDED,
    LINK,
    LINKS,
    STUB,
)


@kernel
def entry_of(state, keys, offset):
    """The entry of an offset, a new one if there is none (there must be room)."""
    mask = len(keys) - 1
    at = np.int64(np.uint64(offset) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(24)) & mask
    wanted = 2 * offset + 1  # never 0, which is an empty place
    while keys[at] != wanted:
        if keys[at] == 0:
            keys[at] = wanted
            state[ENTRIES] += 1
            return at
        at = (at + 1) & mask
    return at


@kernel
def known(keys, offset):
    """The entry of an offset, -1 if there is none."""
    mask = len(keys) - 1
    at = np.int64(np.uint64(offset) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(24)) & mask
    wanted = 2 * offset + 1
    while keys[at] != wanted:
        if keys[at] == 0:
            return -1
        at = (at + 1) & mask
    return at


@kernel
def rehash(state, keys, index, new_keys, new_index):
    """Put all entries into a larger table."""
    state[ENTRIES] = 0
    for i in range(len(keys)):
        if keys[i]:
            at = entry_of(state, new_keys, keys[i] >> 1)
            for column in range(INDEX_COLUMNS):
                new_index[at, column] = index[i, column]


@kernel
def take(state, keys, index, links, pcs, fragments, fields, targets, stub_targets, stubs, landed, size):
    """Enter what was made elsewhere: fragments of `pcs`, links from `fields` to `targets`, stubs for
    `stub_targets`, addresses that have `landed` and where. All are offsets; links out of the module's `size`
    are the linker's own."""
    for i in range(len(pcs)):
        index[entry_of(state, keys, pcs[i]), FRAGMENT] = fragments[i]
    for i in range(len(fields)):
        if targets[i] >= 0 and targets[i] < size:
            at = entry_of(state, keys, targets[i])
            n = state[LINKS]
            links[n, 0], links[n, 1], links[n, 2] = fields[i], targets[i], index[at, LINK]
            state[LINKS] = n + 1
            index[at, LINK] = n + 1
    for i in range(len(stubs)):
        index[entry_of(state, keys, stub_targets[i]), STUB] = stubs[i]
    for i in range(len(landed)):
        index[entry_of(state, keys, landed[i, 0]), LANDED] = landed[i, 1]


@kernel
def forget(state, keys, index, offset, gone):
    """The fragment of an offset is in force no longer, nor is what is known of the code there; while it is
    `gone`, no other one is made."""
    at = entry_of(state, keys, offset)
    index[at, FRAGMENT], index[at, FLAGS], index[at, GONE] = 0, 0, gone


@kernel
def links_to(state, keys, index, offset):
    """The first of the branches that are to lead to an offset, plus 1 (0: there is none)."""
    return index[entry_of(state, keys, offset), LINK]
