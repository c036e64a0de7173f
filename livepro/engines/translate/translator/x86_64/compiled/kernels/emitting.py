"""Fragments of plain blocks: what `emitter` and `counter` write for them, written into a cache's memory.

Indices of `image` are offsets in the cache, those of `text` offsets in the module. `state` is what
`layout` of this package says.
"""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels import kernel, within
from livepro.engines.translate.translator.x86_64.compiled.kernels.decoding import read_32, target_of
from livepro.engines.translate.translator.x86_64.compiled.kernels.filtering import filter_before
from livepro.engines.translate.translator.x86_64.compiled.kernels.operands import move
from livepro.engines.translate.translator.x86_64.compiled.kernels.recording import (
    begin_record,
    give_back,
    lend,
    needs_own,
    record_before,
    take,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import (
    add_one,
    copied,
    note,
    put,
    write_32,
    write_64,
)
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ADJUST_RSP,
    ALLOWED,
    ASKING,
    ASKS,
    BACK,
    BASE,
    BRANCH,
    BYTES,
    CALL,
    COLD,
    COUNTED,
    ENTER,
    FAULTS,
    FILTERS,
    FIXED_BELOW,
    HEAD,
    INCREMENT,
    INDIRECT_CALL,
    INDIRECT_JUMP,
    JUMP,
    KILLS,
    KIND,
    LOAD_RAX,
    LOAD_RCX,
    LOOKUP,
    MODULE,
    OF,
    PADDING,
    PLACES,
    PLAIN,
    POP_RAX,
    PUSH,
    PUSH_AT,
    READS,
    REGISTERS_KILLED,
    REGISTERS_READ,
    RELATIVE,
    RETURN,
    SAVE_RAX,
    SAVE_RCX,
    SITE,
    SPOT,
    UNDER_STACK,
)
from livepro.engines.translate.translator.x86_64.counter import allowed, asking
from livepro.engines.translate.translator.x86_64.facts import ALL, ARITHMETIC

_ALL, _ARITHMETIC = int(ALL), int(ARITHMETIC)
_OUT, _CELL, _SLOT, _DATA, _ADDRESS, _FIXED = (
    int(kind) for kind in (Field.OUT, Field.CELL, Field.SLOT, Field.DATA, Field.ADDRESS, Field.FIXED)
)
_COUNTERS = layout.COUNTERS
_ALLOWED_CELLS, _ALLOWED_ENTER, _SLOT_ASKING = allowed(0).cells, allowed(0).enter, asking(0)[1]
_RCX = 1
_REACH = 1 << 31
_BORROWED = 0xEFEF  # lea cannot use rsp and r12 as they are

NOWHERE = -(1 << 62)
"""No offset in a module."""
IN_LOOKUP, AT_BEGIN = -1, -2
"""Before which instruction a block is counted that looks up where it leads, or is recorded."""
SPILL, DEAD, ASK = 16, -1, -2
"""How a block is counted: by a spilled register, where flags are dead, or that depends on what its successors
read."""


@kernel
def place_counter(shapes, n, facts, live):
    """Before which instruction to count, and how (see `CounterEmitter`); `live` are the flags that successors
    may read, -1 if they have not been asked about: then how may be `ASK`."""
    second = -1
    for i in range(n):
        spot = facts[shapes[i], SPOT]
        if spot == 2:
            return i, DEAD
        if spot == 1 and second < 0:
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
        if live & _ARITHMETIC == 0:
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
def count(state, image, at, pieces, bounds, fields, borrows, cell):
    """The counter of a block, but for one that counts as it looks up where it leads."""
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


@kernel
def push_return(state, image, at, pieces, bounds, fields, offset):
    """Push the program's own return address."""
    address = state[MODULE] + offset
    if address < FIXED_BELOW:
        at = put(image, at, pieces, bounds, PUSH)
        write_32(image, at - 4, address)
        note(state, fields, _FIXED, at - 4)
        return at
    at = put(image, at, pieces, bounds, PUSH_AT)
    place = (state[COLD] + 7) & -8
    write_64(image, place, address)
    note(state, fields, _ADDRESS, place)
    state[COLD] = place + 8
    state[BYTES] += 8
    write_32(image, at - 4, place - at)
    return at


@kernel
def relocate(state, image, at, fields, length, field, target):
    """Have a copy at `at`, whose operand's displacement is at `field` in it, name the module's offset
    `target`. False where that is too far."""
    distance = state[MODULE] + target - (state[BASE] + at + length)
    if distance < -_REACH or distance >= _REACH:
        return False
    write_32(image, at + field, distance)
    note(state, fields, _OUT, at + field)
    return True


@kernel
def load_target(state, image, at, text, begin, end, relative, fields):
    """mov rax, r/m64 with the operand of a jmp or call r/m64; -1 where that is too far away."""
    start, cursor, extension = at, begin, 0x48
    while (
        text[cursor] == 0x26
        or text[cursor] == 0x2E
        or text[cursor] == 0x36
        or text[cursor] == 0x3E
        or (text[cursor] >= 0x64 and text[cursor] <= 0x67)
        or text[cursor] == 0xF0
        or text[cursor] == 0xF2
        or text[cursor] == 0xF3
    ):
        if text[cursor] == 0x64 or text[cursor] == 0x67:
            image[at] = text[cursor]
            at += 1
        cursor += 1
    if text[cursor] & 0xF0 == 0x40:
        extension |= text[cursor] & 3
        cursor += 1
    image[at], image[at + 1], image[at + 2] = extension, 0x8B, text[cursor + 1] & 0xC7
    at = copied(image, at + 3, text, cursor + 2, end)
    if relative:
        length = at - start
        if not relocate(state, image, start, fields, length, length - 4, end + read_32(text, end - 4)):
            return -1
    return at


@kernel
def indirect(state, image, at, text, begin, end, kind, relative, pieces, bounds, fields, slot, counts, owns):
    """Load the target of an indirect branch into rax and look it up; -1 where that cannot be. It `owns` the
    register that is lent, if it needs that."""
    cell = _COUNTERS + slot * 8
    at = put(image, at, pieces, bounds, SAVE_RAX)
    at = put(image, at, pieces, bounds, SAVE_RCX)
    if counts:
        if state[ASKS]:
            at = count_allowed(state, image, at, pieces, bounds, fields, cell)
        else:
            at = add_one(state, image, at, pieces, bounds, fields, 1, cell)
        if kind != RETURN:
            at = put(image, at, pieces, bounds, LOAD_RCX)
    if kind == RETURN:
        at = put(image, at, pieces, bounds, POP_RAX)
        if text[end - 3] == 0xC2 and end - begin >= 3:
            popped = int(text[end - 2]) | int(text[end - 1]) << 8
            if popped:
                at = put(image, at, pieces, bounds, ADJUST_RSP)
                write_32(image, at - 4, popped)
    else:
        at = load_target(state, image, at, text, begin, end, relative, fields)
        if at < 0:
            return -1
        if owns:
            at = give_back(image, at)
        if kind == INDIRECT_CALL:
            at = put(image, at, pieces, bounds, UNDER_STACK)
            at = push_return(state, image, at, pieces, bounds, fields, end)
    at = put(image, at, pieces, bounds, SITE)
    write_32(image, at - 4, slot)
    note(state, fields, _SLOT, at - 4)
    at = put(image, at, pieces, bounds, LOOKUP)
    note(state, fields, _DATA, at - 4)
    return at


@kernel
def pad(state, image, at, before, pieces, bounds):
    """Write what aligns a displacement `before` bytes behind; returns the index behind it."""
    return put(image, at, pieces, bounds, PADDING + (-(state[BASE] + at + before) & 3))


@within
def emit(
    state,
    image,
    at,
    text,
    begin,
    offsets,
    shapes,
    n,
    facts,
    meant,
    pieces,
    bounds,
    fields,
    slot,
    counter,
    borrows,
    places,
):
    """Write the fragment of the block at `begin` that is counted before instruction `counter`; `meant` is
    what is recorded of shapes. Returns the index behind it (-1: that cannot be), the index of the
    displacement of its branch and where in the module that leads, where control goes on at its end
    (`NOWHERE`), and the return address that it has pushed (-1: none)."""
    field, leads, falls, returns = -1, NOWHERE, NOWHERE, -1
    recorded, told, cell = state[PLACES], 0, _COUNTERS + slot * 8
    if state[FILTERS]:
        state[COLD] += 1  # a thread that has run into a stop is right behind it, and not in a slow path
    elif recorded >= 0:
        at = begin_record(state, image, at, shapes, n, facts, pieces, bounds, fields, places, cell)
    for i in range(n):
        first, end = begin + offsets[i], begin + offsets[i + 1]
        if i == counter:
            at = count(state, image, at, pieces, bounds, fields, borrows, cell)
        here = told
        while told < recorded and places[told, OF] == i:
            told += 1
        if state[FILTERS]:
            tallied = counter >= 0 and i >= counter
            at = filter_before(
                state, image, at, pieces, bounds, fields, places, here, told, i, begin, offsets, cell, tallied
            )
        elif told > here:
            at = record_before(state, image, at, fields, places, here, told, offsets[i])
        row = shapes[i]
        kind = facts[row, KIND]
        owning = recorded >= 0 and not state[FILTERS] and needs_own(row, facts)
        if owning:
            at = take(image, at)
        if kind == PLAIN:
            at = copied(image, at, text, first, end)
            if owning:
                at = lend(image, at, row, meant)
        elif kind == RELATIVE:
            head = facts[row, HEAD]
            target = end + read_32(text, first + head)
            start = at
            at = copied(image, at, text, first, end)
            if not relocate(state, image, start, fields, end - first, head, target):
                return -1, field, leads, falls, returns
            if owning:
                at = lend(image, at, row, meant)
        elif kind in (JUMP, BRANCH, CALL, COUNTED):
            head = facts[row, HEAD]
            target = target_of(text, first, end, head)
            falls = target
            if kind == BRANCH:
                at = pad(state, image, at, 2, pieces, bounds)
                image[at] = 0x0F
                image[at + 1] = 0x80 | text[first + head - 1] & 0xF
                field, leads, falls = at + 2, target, end
                at += 6
            elif kind == COUNTED:
                length = end - first
                at = pad(state, image, at, length + 1, pieces, bounds)
                at = copied(image, at, text, first, end - 1)
                image[at], image[at + 1] = 5, 0xE9
                field, leads = at + 2, end
                at += 6
            elif kind == CALL:
                at = push_return(state, image, at, pieces, bounds, fields, end)
                returns = end
        else:
            relative = facts[row, HEAD] > 0
            counts = counter == IN_LOOKUP
            code = text, first, end, kind, relative
            at = indirect(state, image, at, *code, pieces, bounds, fields, slot, counts, owning)
            if at < 0:
                return -1, field, leads, falls, returns
            if kind == INDIRECT_CALL:
                returns = end
    return at, field, leads, falls, returns
