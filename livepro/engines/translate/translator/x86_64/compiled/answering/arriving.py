"""A thread has come to what has no fragment yet: where it goes on once that is translated."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.layout import GROUP
from livepro.engines.translate.translator.compiling.kernels import kernel, within
from livepro.engines.translate.translator.compiling.kernels.index import entry_of, known
from livepro.engines.translate.translator.compiling.tables import (
    BASE,
    BUDGET,
    CELL,
    FINE,
    FRAGMENT,
    LANDED,
    LANDINGS,
    LENGTH,
    MODULE,
    PATCHES,
    RETURNS,
    ROWS,
    SIZE,
    STUB,
    SUCCESSORS,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.eager import has_room, translate
from livepro.engines.translate.translator.x86_64.compiled.kernels.linking import enter, land, publish
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import read_32
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ASKS,
    END_ROW,
    FIRST_ROW,
    LANDS,
    OFFSET,
    STUB_SIZE,
)

_NOT_HERE = -1
_LENGTHS, _GROUPS_END = layout.LENGTHS // 4, layout.CELLS // 4 + 1


@within
def tell_lengths(told, made, first, end, cell):
    """Let the process know how long the blocks of some rows are, which count in the cells from `cell` on:
    threads may come there as soon as branches lead there. See `ThreadAreas.note_lengths`."""
    for row in range(first, end):
        told[_LENGTHS + cell + row - first] = made[row, LENGTH]
    groups = (cell + end - first + GROUP - 1) // GROUP
    if groups > told[_GROUPS_END]:
        told[_GROUPS_END] = groups


@kernel
def arrive(
    stop,
    target,
    cell,
    entry,
    eager,
    miss,
    otherwise,
    state,
    image,
    words,
    long_words,
    table,
    tails,
    elsewhere,
    told,
    log,
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
    left,
    again,
    offsets,
    shapes,
):
    """Where a thread goes on (an address) that has run into the stop at the address `stop`, a stub, or (0)
    has branched to the address `target`, which the lookup table does not have. A fragment is made if there is
    none, and `eager` likely successors along with it; the first one counts in `cell`. -1 where that is left
    to Python. What has been done is told in row `entry` of the `log`; for the others see `translate` and
    `linking.enter`."""
    if stop:
        stub = stop - state[BASE]
        if stub + STUB_SIZE > len(image):
            return _NOT_HERE
        offset = read_32(image, stub + 1)
        at = known(keys, offset)
        if offset >= state[SIZE] or at < 0 or index[at, STUB] != stub:
            return _NOT_HERE
    else:
        offset = target - state[MODULE]
    lands = stop == 0
    if not has_room(state, keys, links, made, fields, stubs, landings):
        return _NOT_HERE
    at = entry_of(state, keys, offset)
    first = state[LANDINGS]
    log[entry, OFFSET], log[entry, LANDS], log[entry, FIRST_ROW] = offset, 1 if lands else 0, state[ROWS]
    if not index[at, FRAGMENT]:
        state[CELL], state[BUDGET], state[RETURNS], state[SUCCESSORS] = cell, eager, 0, 0
        came = translate(
            state,
            image,
            offset,
            lands,
            offset >= 0,  # True, but no constant, for which all would be compiled once more
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
            left,
            again,
            offsets,
            shapes,
        )
        if came != FINE:
            return _NOT_HERE
        if state[ASKS]:
            tell_lengths(told, made, log[entry, FIRST_ROW], state[ROWS], cell)
        publish(words, patches, state[PATCHES])
        state[PATCHES] = 0
    elif lands and not index[at, LANDED]:
        land(state, image, offset, pieces, bounds, keys, index, landings)
        landings[first, 2] = 1
    if state[LANDINGS] > first:
        enter(state, image, long_words, table, tails, miss, landings, state[LANDINGS], otherwise, elsewhere)
    log[entry, END_ROW] = state[ROWS]
    return state[BASE] + (index[at, LANDED] if lands else index[at, FRAGMENT])
