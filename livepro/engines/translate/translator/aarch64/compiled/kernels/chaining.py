"""Chains of blocks: decoded, laid out one behind the other, and linked, with those that are likely to follow.

What is written here nothing leads to yet: what is to lead there are `patches`, to be applied when all of it
is in place, and known to the tracer.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate.translator.aarch64.compiled.kernels.counting import place_counter
from livepro.engines.translate.translator.aarch64.compiled.kernels.decoding import decode, distance_of
from livepro.engines.translate.translator.aarch64.compiled.kernels.emitting import emit
from livepro.engines.translate.translator.aarch64.compiled.kernels.linking import link, put_landing
from livepro.engines.translate.translator.aarch64.compiled.tables import BRANCH, KIND
from livepro.engines.translate.translator.compiling.kernels import within
from livepro.engines.translate.translator.compiling.kernels.index import entry_of
from livepro.engines.translate.translator.compiling.kernels.noting import landed, note_patches, note_return
from livepro.engines.translate.translator.compiling.tables import (
    AT,
    BYTES,
    BYTES_OF,
    CELL,
    CHAIN,
    CODE,
    FINE,
    FRAGMENT,
    HOT,
    HOT_END,
    LENGTH,
    LIVE,
    NOWHERE,
    PC,
    PYTHON,
    ROOM,
    ROWS,
    SIZE,
    SLOW,
    START,
)


@within
def lay_out(
    state,
    image,
    pc,
    lands,
    likely,
    text,
    present,
    decoded,
    lookup,
    keys,
    index,
    links,
    made,
    stubs,
    landings,
    patches,
    needs,
    returns,
    successors,
):
    """Lay out the block at `pc` and, behind it, those that follow when no branch is taken; with a landing if
    it `lands`. Returns what came of the first block."""
    begin = at = state[HOT] + 15 & -16
    first_row = state[ROWS]
    if lands:
        at = put_landing(state, image, at, pc)
    block, done = pc, 0
    while True:
        status, n = decode(state, text, present, block, decoded, needs)
        last = block + 4 * (n - 1)
        branches = status == FINE and decoded[n - 1, KIND] == BRANCH
        if branches and last + distance_of(np.int64(text[last >> 2])) == block:
            status = PYTHON  # such a loop is copied several times
        if status != FINE:
            if not done:
                return status
            falls = block
            break
        start, cell = at, state[CELL]
        counter, one, other = place_counter(state, text, block >> 2, decoded, n)
        at, field, leads, falls, returned = emit(
            state, image, at, text, block, decoded, n, cell, counter, one, other, lookup
        )
        row = state[ROWS]
        made[row, PC], made[row, START], made[row, BYTES_OF] = block, start, at - start
        made[row, LENGTH], made[row, CODE], made[row, LIVE] = n, 4 * n, 0
        made[row, SLOW], made[row, AT] = 0, block
        state[ROWS] = row + 1
        state[CELL] = cell + 1
        done += 1
        index[entry_of(state, keys, block), FRAGMENT] = start
        if field >= 0:
            link(state, image, field, leads, keys, index, links, stubs, successors)
        note_return(state, keys, index, returns, returned)
        if falls == NOWHERE:
            break
        if done == CHAIN or falls < 0 or falls >= state[SIZE] or at + state[ROOM] > state[HOT_END]:
            break
        if index[entry_of(state, keys, falls), FRAGMENT]:
            break
        block = falls
    if falls != NOWHERE:
        link(state, image, at, falls, keys, index, links, stubs, successors)
        at += 4
    state[BYTES] += at - begin
    state[HOT] = at
    note_patches(state, keys, index, links, made, patches, first_row, state[ROWS])
    if lands:
        landed(state, pc, begin, likely, keys, index, landings)
    return FINE
