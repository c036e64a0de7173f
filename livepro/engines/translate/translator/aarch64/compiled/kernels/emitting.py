"""Fragments of plain blocks: what `emitter` writes for them, written into a cache's memory.

Indices of `image` are offsets in the cache; `text` is the module's code, word by word.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64.compiled.kernels.counting import count, counting
from livepro.engines.translate.translator.aarch64.compiled.kernels.decoding import distance_of
from livepro.engines.translate.translator.aarch64.compiled.kernels.relocating import (
    put_address,
    put_branch,
    put_literal,
    put_target,
)
from livepro.engines.translate.translator.aarch64.compiled.kernels.writing import address, put, put_all
from livepro.engines.translate.translator.aarch64.compiled.tables import (
    ADDRESS,
    BRANCH,
    CALL,
    INDIRECT_CALL,
    INDIRECT_JUMP,
    KIND,
    LITERAL,
    PLAIN,
)
from livepro.engines.translate.translator.aarch64.counter import IN_LOOKUP, NEAR, SAVE_PAIR
from livepro.engines.translate.translator.aarch64.encode import BASE, LINK, X0, X1
from livepro.engines.translate.translator.compiling.kernels import within
from livepro.engines.translate.translator.compiling.tables import BASE as CACHE
from livepro.engines.translate.translator.compiling.tables import MODULE, NOWHERE

_COUNTERS = layout.COUNTERS


@within
def emit(state, image, at, text, begin, decoded, n, slot, counter, one, other, lookup):
    """Write the fragment of the block at `begin` that is counted before instruction `counter`, where these
    registers are free; `lookup` are the words that look x0 up. Returns the index behind it, the index of its
    branch and where in the module that leads (-1: it has none), where control goes on at its end (`NOWHERE`),
    and the return address that it has put into the link register (-1: none)."""
    field, leads, falls, returns = -1, NOWHERE, NOWHERE, -1
    for i in range(n):
        pc = begin + 4 * i
        word, kind = np.int64(text[pc >> 2]), decoded[i, KIND]
        if i == counter:
            at = count(state, image, at, slot, n, one, other)
        here = state[CACHE] + at
        if kind == PLAIN:
            at = put(image, at, word)
        elif kind == ADDRESS:
            at = put_address(image, at, here, word, state[MODULE] + pc)
        elif kind == LITERAL:
            at = put_literal(image, at, here, word, state[MODULE] + pc)
        elif kind < INDIRECT_JUMP:
            falls = pc + distance_of(word)
            if kind == BRANCH:
                field = put_branch(image, at, word)
                leads, falls, at = falls, pc + 4, field + 4
            elif kind == CALL:
                returns = pc + 4
                at = address(image, at, here, LINK, state[MODULE] + returns)
        else:
            at = put(image, at, SAVE_PAIR)
            counts = counter == IN_LOOKUP
            if counts:
                cell = _COUNTERS + slot * 8
                at = counting(state, image, at, cell, n, X0, BASE if cell < NEAR else X1)
            at = put_target(image, at, word >> 5 & 31, counts)
            if kind == INDIRECT_CALL:
                returns = pc + 4
                at = address(image, at, state[CACHE] + at, LINK, state[MODULE] + returns)
            at = put_all(image, at, lookup)
    return at, field, leads, falls, returns
