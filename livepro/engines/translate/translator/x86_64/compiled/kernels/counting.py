"""Where a block is counted, and how: what `counter` writes, written into a cache's memory."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.tables import BYTES, COLD
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels.operands import move
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import add_one, note, put, write_32
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ALLOWED,
    ASKING,
    ASKS,
    BACK,
    BRANCH,
    CALL,
    CHARGE,
    CHARGE_MANY,
    CHARGES,
    ENTER,
    FAULTS,
    FLAGS_BACK,
    INCREMENT,
    INDIRECT_JUMP,
    JUMP,
    KEEP_FLAGS,
    KILLS,
    KIND,
    LOAD_RAX,
    LOAD_RCX,
    MANY,
    NATIVE,
    PLAIN,
    READS,
    REGISTERS_KILLED,
    REGISTERS_READ,
    RETURN,
    SAVE_RAX,
    SAVE_RCX,
    STOP_IF_SPENT,
)
from livepro.engines.translate.translator.x86_64.counter import allowed, asking
from livepro.engines.translate.translator.x86_64.facts import ALL, ARITHMETIC

_ALL, _ARITHMETIC = int(ALL), int(ARITHMETIC)
_CELL, _SLOT = int(Field.CELL), int(Field.SLOT)
_ALLOWED_CELLS, _ALLOWED_ENTER, _SLOT_ASKING = allowed(0).cells, allowed(0).enter, asking(0)[1]
_RCX = 1
_BORROWED = 0xEFEF  # lea cannot use rsp and r12 as they are

IN_LOOKUP, AT_BEGIN = -1, -2
"""Before which instruction a block is counted that looks up where it leads, or is recorded."""
SPILL, DEAD, ASK = 16, -1, -2
"""How a block is counted: by a spilled register, where flags are dead, or that depends on what its successors
read."""


@kernel
def place_counter(state, shapes, n, facts, live):
    """Before which instruction to count, and how (see `CounterEmitter`); `live` are the flags that successors
    may read, -1 if they have not been asked about: then how may be `ASK`."""
    needed = _ALL if state[CHARGES] else _ARITHMETIC
    second = -1
    for i in range(n):
        row = shapes[i]
        # (See `facts.Facts.spot`.)
        if (
            not facts[row, READS] & needed
            and facts[row, KILLS] & needed == needed
            and facts[row, KIND] < NATIVE
        ):
            if not facts[row, FAULTS]:
                return i, DEAD
            if second < 0:
                second = i
    if second >= 0:
        return second, DEAD
    last = facts[shapes[n - 1], KIND]
    if last in (JUMP, BRANCH, CALL):
        if live < 0:
            return 0, ASK
    else:
        live = _ALL
    best = -1
    for i in range(n - 1, -1, -1):
        row = shapes[i]
        live = live & ~facts[row, KILLS] | facts[row, READS]
        if live & needed == 0:
            best = i
    if best >= 0:
        return best, DEAD
    if last >= INDIRECT_JUMP and last <= RETURN:
        return IN_LOOKUP, DEAD
    read = 0
    for i in range(n):
        row = shapes[i]
        if facts[row, FAULTS] or facts[row, KIND] != PLAIN:
            break
        read |= facts[row, REGISTERS_READ]
        free = facts[row, REGISTERS_KILLED] & ~read & _BORROWED
        if free:
            register = 0
            while not free >> register & 1:
                register += 1
            return 0, register
        read |= facts[row, REGISTERS_KILLED]
    return 0, SPILL


@kernel
def count_allowed(state, image, at, pieces, bounds, fields, cell):
    """Count in rcx, or ask for an allowance."""
    begin = at
    at = put(image, at, pieces, bounds, ALLOWED)
    for place in _ALLOWED_CELLS:
        write_32(image, begin + place, cell)
        note(state, fields, _CELL, begin + place)
    state[ENTER], state[BACK] = begin + _ALLOWED_ENTER, at
    return at


@kernel
def count_charged(state, image, at, pieces, bounds, fields, cell, n, dead):
    """Count, and take a block's length from the budget, flags being `dead` or not."""
    if not dead:
        at = put(image, at, pieces, bounds, KEEP_FLAGS)
    at = put(image, at, pieces, bounds, INCREMENT)
    write_32(image, at - 4, cell)
    note(state, fields, _CELL, at - 4)
    if n < MANY:
        at = put(image, at, pieces, bounds, CHARGE)
        image[at - 1] = n
    else:
        at = put(image, at, pieces, bounds, CHARGE_MANY)
        write_32(image, at - 4, n)
    at = put(image, at, pieces, bounds, STOP_IF_SPENT)
    return at if dead else put(image, at, pieces, bounds, FLAGS_BACK)


@kernel
def ask(state, image, pieces, bounds, fields, slot):
    """Write where a block asks for an allowance, and let it lead there; returns the offset in the cache."""
    # (A thread that has run into a stop is right behind it, and not in the slow path.)
    begin = state[COLD] + 1
    at = put(image, begin, pieces, bounds, ASKING)
    write_32(image, begin + _SLOT_ASKING, slot)
    note(state, fields, _SLOT, begin + _SLOT_ASKING)
    write_32(image, at - 4, state[BACK] - at)
    write_32(image, state[ENTER], begin - state[ENTER] - 4)
    state[COLD] = at
    state[BYTES] += at - begin
    return begin


@kernel
def count(state, image, at, pieces, bounds, fields, borrows, cell, n):
    """The counter of a block of `n` instructions, but for one that counts as it looks up where it leads."""
    if state[CHARGES]:
        return count_charged(state, image, at, pieces, bounds, fields, cell, n, borrows == DEAD)
    if borrows == DEAD:
        at = put(image, at, pieces, bounds, INCREMENT)
        write_32(image, at - 4, cell)
        note(state, fields, _CELL, at - 4)
        if state[ASKS]:
            image[at], image[at + 1] = 0x0F, 0x8F  # jg: see `encode.jump_if_positive`
            at += 6
            state[ENTER], state[BACK] = at - 4, at
        return at
    if state[ASKS]:
        if borrows == SPILL:
            at = put(image, at, pieces, bounds, SAVE_RCX)
        elif borrows != _RCX:
            at = move(image, at, borrows, _RCX)
        at = count_allowed(state, image, at, pieces, bounds, fields, cell)
        if borrows == SPILL:
            return put(image, at, pieces, bounds, LOAD_RCX)
        return move(image, at, _RCX, borrows) if borrows != _RCX else at
    if borrows < SPILL:
        return add_one(state, image, at, pieces, bounds, fields, borrows, cell)
    at = put(image, at, pieces, bounds, SAVE_RAX)
    at = add_one(state, image, at, pieces, bounds, fields, 0, cell)
    return put(image, at, pieces, bounds, LOAD_RAX)
