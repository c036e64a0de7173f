"""Chains of blocks: decoded, laid out one behind the other, and linked, with those that are likely to follow.

What is written here nothing leads to yet: what is to lead there are `patches`, to be applied when all of it
is in place, and known to the tracer.
"""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.compiling.kernels import kernel, within
from livepro.engines.translate.translator.compiling.kernels.index import entry_of
from livepro.engines.translate.translator.compiling.kernels.noting import landed, note_patches, note_return
from livepro.engines.translate.translator.compiling.tables import (
    AT,
    BYTES,
    BYTES_OF,
    CELL,
    CHAIN,
    CODE,
    COLD,
    FIELDS,
    FINE,
    FLAGS,
    FRAGMENT,
    GONE,
    HOT,
    HOT_END,
    LENGTH,
    LIVE,
    MODULE,
    NEEDS,
    NOWHERE,
    PC,
    PYTHON,
    ROOM,
    ROWS,
    SIZE,
    SLOW,
    START,
    WAIT,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.counting import (
    ASK,
    AT_BEGIN,
    DEAD,
    ask,
    place_counter,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.decoding import decode, live_in, target_of
from livepro.engines.translate.translator.x86_64.compiled.kernels.emitting import (
    emit,
    pad,
    put_aside,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.filtering import plan_filtered
from livepro.engines.translate.translator.x86_64.compiled.kernels.linking import link
from livepro.engines.translate.translator.x86_64.compiled.kernels.recording import plan
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import put, write_64
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ASKS,
    BRANCH,
    CALL,
    CHECKS,
    FILTERS,
    HEAD,
    INDIRECT_JUMP,
    JUMP,
    JUMP_PIECE,
    KIND,
    LANDING,
    LOW,
    PLACES,
    RECORDS,
)
from livepro.engines.translate.translator.x86_64.facts import ALL

_ALL = int(ALL)


@kernel
def live_out(state, text, present, target, falls, lows, highs, rows, facts, needs, keys, index):
    """The flags that successors of a block may read; -1 if something must be read or learnt first."""
    live = 0
    for successor in (target, falls):
        if successor == NOWHERE:
            continue
        if state[CHECKS] or successor < 0 or successor >= state[SIZE]:
            live |= _ALL  # (what may change may be other code the next time, and the block be as it was)
            continue
        at = entry_of(state, keys, successor)
        if not index[at, FLAGS]:
            flags = live_in(
                text, present, successor, lows, highs, rows, facts, needs, state[NEEDS : NEEDS + 1], _ALL
            )
            if flags < 0:
                return -1
            index[at, FLAGS] = flags + 1
        live |= index[at, FLAGS] - 1
    return live


@within
def prepare(
    state,
    text,
    present,
    pc,
    offsets,
    shapes,
    lows,
    highs,
    rows,
    facts,
    recorded,
    places,
    moved,
    needs,
    keys,
    index,
):
    """Decode the block at `pc` and see how it is counted. Returns (what came of it, instructions, before
    which one it is counted, how, the flags that its successors may read)."""
    counts = state[NEEDS : NEEDS + 1]
    status, n = decode(text, present, pc, lows, highs, rows, facts, offsets, shapes, needs, counts)
    if status != FINE:
        return status, n, 0, 0, 0
    row = shapes[n - 1]
    kind = facts[row, KIND]
    first, end = pc + offsets[n - 1], pc + offsets[n]
    target, falls = NOWHERE, NOWHERE
    if kind <= CALL:
        target = target_of(text, first, end, facts[row, HEAD])
        if kind == BRANCH:
            falls = end
            if target == pc:
                return PYTHON, n, 0, 0, 0  # such a loop is copied several times
    elif kind == INDIRECT_JUMP and state[LOW] and n >= 3 and text[end - 1] >= 0xC0:
        return PYTHON, n, 0, 0, 0  # it may branch by a table
    state[PLACES] = -1
    if state[CHECKS] and index[entry_of(state, keys, pc), GONE]:
        return PYTHON, n, 0, 0, 0
    if state[RECORDS]:
        status = plan(state, text, pc, offsets, shapes, n, facts, recorded, places, moved, needs, counts)
        return status, n, AT_BEGIN, DEAD, 0
    live = 0
    if state[FILTERS]:
        live = _ALL
        if kind in (JUMP, BRANCH, CALL):
            live = live_out(state, text, present, target, falls, lows, highs, rows, facts, needs, keys, index)
            if live < 0:
                return WAIT, n, 0, 0, 0
        status = plan_filtered(
            state, text, pc, offsets, shapes, n, facts, recorded, places, needs, counts, live
        )
        counter, borrows = place_counter(state, shapes, n, facts, live)
        return status, n, counter, borrows, live
    counter, borrows = place_counter(state, shapes, n, facts, -1)
    if borrows == ASK:
        live = live_out(state, text, present, target, falls, lows, highs, rows, facts, needs, keys, index)
        if live < 0:
            return WAIT, n, 0, 0, 0
        counter, borrows = place_counter(state, shapes, n, facts, live)
    return FINE, n, counter, borrows, live


@kernel
def bound_late(state, text, at, end):
    """Where the instruction at an index leads to at first if it is an entry of a procedure linkage table that
    is bound when it is used: to what is behind it, which pushes its number (System V ABI, AMD64 supplement,
    5.2)."""
    if (
        end - at == 6
        and end < state[SIZE]
        and text[at] == 0xFF
        and text[at + 1] == 0x25
        and text[end] == 0x68
    ):
        return end
    return NOWHERE


@within
def lay_out(
    state,
    image,
    pc,
    lands,
    likely,
    text,
    present,
    lows,
    highs,
    rows,
    facts,
    recorded,
    places,
    moved,
    pieces,
    bounds,
    keys,
    index,
    links,
    made,
    fields,
    stubs,
    landings,
    patches,
    needs,
    returns,
    successors,
    offsets,
    shapes,
):
    """Lay out the block at `pc` and, behind it, those that follow when no branch is taken; with a landing if
    it `lands`. Returns what came of the first block."""
    begin = at = state[HOT] + 15 & -16
    first_field, first_row, cold = state[FIELDS], state[ROWS], state[COLD]
    if lands:
        at = put(image, at, pieces, bounds, LANDING)
        write_64(image, begin + 2, -(state[MODULE] + pc))
    block, done = pc, 0
    while True:
        status, n, counter, borrows, live = prepare(
            state,
            text,
            present,
            block,
            offsets,
            shapes,
            lows,
            highs,
            rows,
            facts,
            recorded,
            places,
            moved,
            needs,
            keys,
            index,
        )
        if status != FINE:
            if not done:
                return status
            falls = block
            break
        start, cell, noted, literal = at, state[CELL], state[FIELDS], state[COLD]
        end, field, leads, falls, pushed = emit(
            state,
            image,
            at,
            text,
            block,
            offsets,
            shapes,
            n,
            facts,
            recorded,
            pieces,
            bounds,
            fields,
            cell,
            counter,
            borrows,
            places,
        )
        if end < 0:
            state[FIELDS], state[COLD] = noted, literal
            if not done:
                state[FIELDS], state[COLD] = first_field, cold
                return PYTHON
            falls = block
            break
        row = state[ROWS]
        made[row, SLOW] = literal + 1 if state[FILTERS] else 0
        if state[ASKS]:
            made[row, SLOW] = ask(state, image, pieces, bounds, fields, cell)
        made[row, PC], made[row, START], made[row, BYTES_OF] = block, start, end - start
        made[row, LENGTH], made[row, CODE], made[row, LIVE], made[row, AT] = n, offsets[n], live, block
        state[ROWS] = row + 1
        state[CELL] = cell + 1
        at = end
        done += 1
        index[entry_of(state, keys, block), FRAGMENT] = start
        if field >= 0:
            link(state, image, field, leads, keys, index, links, stubs, successors)
        if pushed < 0:
            pushed = bound_late(state, text, block + offsets[n - 1], block + offsets[n])
        note_return(state, keys, index, returns, pushed)
        if falls == NOWHERE:
            break
        if done == CHAIN or falls < 0 or falls >= state[SIZE] or at + state[ROOM] > state[HOT_END]:
            break
        if index[entry_of(state, keys, falls), FRAGMENT]:
            break
        block = falls
    if falls != NOWHERE:
        at = pad(state, image, at, 1, pieces, bounds)
        at = put(image, at, pieces, bounds, JUMP_PIECE)
        link(state, image, at - 4, falls, keys, index, links, stubs, successors)
    last = state[ROWS]
    if state[CHECKS]:
        at = put_aside(state, image, at, text, first_row, made, pieces, bounds)
    state[BYTES] += at - begin
    state[HOT] = at
    note_patches(state, keys, index, links, made, patches, first_row, last)
    if lands:
        landed(state, pc, begin, likely, keys, index, landings)
    return FINE
