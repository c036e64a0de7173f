"""Where a block is counted, and how (see `CounterEmitter`)."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.aarch64.compiled.kernels.writing import (
    add_immediate,
    load,
    put,
    store,
    subtract_immediate,
)
from livepro.engines.translate.translator.aarch64.compiled.tables import (
    CALL,
    CHARGES,
    INDIRECT_JUMP,
    KILLS,
    KIND,
    MENTIONS,
)
from livepro.engines.translate.translator.aarch64.counter import IN_LOOKUP, LOAD_PAIR, NEAR, SAVE_PAIR
from livepro.engines.translate.translator.aarch64.encode import BASE, LINK, X0, X1
from livepro.engines.translate.translator.aarch64.facts import NEVER_FAULT
from livepro.engines.translate.translator.aarch64.machine import SPILL_PAIR
from livepro.engines.translate.translator.compiling.kernels import kernel

_COUNTERS, _BUDGET, _BRK = layout.COUNTERS, layout.BUDGET, encode.BRK
_IF_POSITIVE = encode.branch_if_positive(0, 8)
_NEVER_FAULT = sum(1 << group for group in NEVER_FAULT)


@kernel
def _many(mask):
    """How many bits of a mask are set, up to two."""
    rest = mask & mask - 1
    return 0 if mask == 0 else 1 if rest == 0 else 2


@kernel
def place_counter(state, text, first, decoded, n):
    """Before which instruction to count, and the registers that are free there (-1: none)."""
    if state[CHARGES]:
        return 0, -1, -1
    kind = decoded[n - 1, KIND]
    if kind >= INDIRECT_JUMP:
        return IN_LOOKUP, -1, -1
    dead = best = place = 0
    for i in range(n - 1, -1, -1):
        if kind == CALL and i == n - 1:
            dead = 1 << LINK
        elif _NEVER_FAULT >> (text[first + i] >> 25 & 15) & 1:
            dead = dead & ~decoded[i, MENTIONS] | decoded[i, KILLS]
        else:
            dead = 0
        if dead and _many(dead) >= _many(best):
            place, best = i, dead
    one = other = -1
    for register in range(31):
        if best >> register & 1 and register != BASE:
            if one < 0:
                one = register
            elif other < 0:
                other = register
    return (place, one, other) if one >= 0 else (0, -1, -1)


@kernel
def counting(state, image, at, cell, n, value, where):
    """Count with registers at hand: `where` is one to form the cell's address in, if it is far."""
    if where != BASE:
        at = put(image, at, add_immediate(where, BASE, cell >> 12, True))
        cell &= 0xFFF
    at = put(image, at, load(value, where, cell))
    at = put(image, at, add_immediate(value, value, 1, False))
    at = put(image, at, store(value, where, cell))
    if state[CHARGES]:
        at = put(image, at, load(value, BASE, _BUDGET))
        if n >> 12:
            at = put(image, at, subtract_immediate(value, value, n >> 12, True))
        at = put(image, at, subtract_immediate(value, value, n & 0xFFF, False))
        at = put(image, at, store(value, BASE, _BUDGET))
        at = put(image, at, _IF_POSITIVE | value)
        at = put(image, at, _BRK)
    return at


@kernel
def count(state, image, at, slot, n, one, other):
    """The counter of a block of `n` instructions; the registers are free, if they are not -1."""
    cell = _COUNTERS + slot * 8
    if cell < NEAR:
        if one >= 0:
            return counting(state, image, at, cell, n, one, BASE)
        at = put(image, at, store(X0, BASE, SPILL_PAIR))
        at = counting(state, image, at, cell, n, X0, BASE)
        return put(image, at, load(X0, BASE, SPILL_PAIR))
    if other >= 0:
        return counting(state, image, at, cell, n, one, other)
    if one >= 0:
        other = X0 if one != X0 else X1
        at = put(image, at, store(other, BASE, SPILL_PAIR))
        at = counting(state, image, at, cell, n, one, other)
        return put(image, at, load(other, BASE, SPILL_PAIR))
    at = put(image, at, SAVE_PAIR)
    at = counting(state, image, at, cell, n, X0, X1)
    return put(image, at, LOAD_PAIR)
