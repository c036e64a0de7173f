"""A block translated when a thread comes to it, and with it those that are likely to follow."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.kernels.index import entry_of
from livepro.engines.translate.translator.compiling.kernels.noting import keep_rest, put_off
from livepro.engines.translate.translator.compiling.tables import (
    BUDGET,
    CHAIN,
    COLD,
    COLD_END,
    ENTRIES,
    FIELDS,
    FINE,
    FRAGMENT,
    HOT,
    HOT_END,
    LANDED,
    LANDINGS,
    LINKS,
    RETURNS,
    ROOM,
    ROWS,
    STUBS,
    SUCCESSORS,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.chaining import lay_out
from livepro.engines.translate.translator.x86_64.compiled.kernels.linking import land
from livepro.engines.translate.translator.x86_64.compiled.tables import FIELDS_OF_BLOCK, FILTERS


@kernel
def translate(
    state,
    image,
    first,
    first_lands,
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
    left,
    again,
    offsets,
    shapes,
):
    """Translate the block at `first` (-1: none) and, eagerly, `state[BUDGET]` likely successors and what
    follows them. What calls return to on the way from the first is not counted: where a call is executed, it
    is, too. Returns what came of the first. `again` are blocks (offset, whether it lands) that must wait for
    `needs`, `left` those for the translator in Python."""
    pc, lands, asked = first, first_lands, first >= 0
    eager, next_one = state[BUDGET] > 0, 0
    while True:
        if not asked:
            if eager and state[RETURNS] and (next_one == 0 or state[BUDGET] > 0):
                state[RETURNS] -= 1
                pc, lands = returns[state[RETURNS]], True
            elif eager and next_one < state[SUCCESSORS] and state[BUDGET] > 0:
                pc, lands = successors[next_one], False
                next_one += 1
            else:
                break
            at = entry_of(state, keys, pc)
            if not has_room(state, keys, links, made, fields, stubs, landings):
                break
            if index[at, FRAGMENT]:
                if lands and not index[at, LANDED]:
                    land(state, image, pc, pieces, bounds, keys, index, landings)
                continue
            if next_one:
                state[BUDGET] -= 1
        came = lay_out(
            state,
            image,
            pc,
            lands,
            likely and asked,
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
        )
        if asked:
            if came != FINE:
                return came
            asked = False
        else:
            put_off(state, came, pc, lands, again, left)
    keep_rest(state, successors, next_one)
    return FINE


@kernel
def has_room(state, keys, links, made, fields, stubs, landings):
    """Whether there is room for one more chain in all arrays and in the cache. (A block links and lands once
    or twice; there is room for as many patches as there are links.)"""
    waiting = state[LINKS]
    return (
        state[ENTRIES] * 2 + 64 < len(keys)
        and waiting + 32 < len(links)
        and state[ROWS] + 2 * CHAIN < len(made)
        and state[FIELDS] + CHAIN * FIELDS_OF_BLOCK < len(fields)
        and state[STUBS] + 32 < len(stubs)
        and state[LANDINGS] + 2 < len(landings)
        and state[HOT] + state[ROOM] < state[HOT_END]
        and state[COLD] + 4096 + (state[ROOM] if state[FILTERS] else 0) < state[COLD_END]
    )
