"""Fragments of plain blocks: what `emitter` writes for them, written into a cache's memory.

Indices of `image` are offsets in the cache, those of `text` offsets in the module. `state` is what
`layout` of this package says.
"""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.compiling.kernels import kernel, within
from livepro.engines.translate.translator.compiling.tables import (
    AT,
    BASE,
    BYTES,
    BYTES_OF,
    CODE,
    COLD,
    LENGTH,
    LIVE,
    MODULE,
    NOWHERE,
    PC,
    ROWS,
    SLOW,
    START,
)
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.compiled.kernels.counting import (
    IN_LOOKUP,
    count,
    count_allowed,
    count_charged,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.decoding import read_32, target_of
from livepro.engines.translate.translator.x86_64.compiled.kernels.filtering import filter_before
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
    ASKS,
    BRANCH,
    CALL,
    CHARGES,
    CHECKS,
    COMPARE,
    COUNTED,
    FILTERS,
    FIXED_BELOW,
    HEAD,
    INDIRECT_CALL,
    JUMP,
    JUMP_PIECE,
    KIND,
    LOAD_RAX,
    LOAD_RCX,
    LOOKUP,
    OF,
    PADDING,
    PLACES,
    PLAIN,
    POP_RAX,
    PUSH,
    PUSH_AT,
    RELATIVE,
    RETURN,
    SAVE_RAX,
    SAVE_RCX,
    SITE,
    UNDER_STACK,
)

_OUT, _CELL, _SLOT, _DATA, _ADDRESS, _FIXED = (
    int(kind) for kind in (Field.OUT, Field.CELL, Field.SLOT, Field.DATA, Field.ADDRESS, Field.FIXED)
)
_COUNTERS = layout.COUNTERS
_REACH = 1 << 31
_NO_PREFIX = encode.NO_PREFIX[0]
_MARK = 0x0123_4567_89AB_CDEF
_COMPARED = encode.compare(8, 0, -_MARK).index(_MARK.to_bytes(8, "little"))
_COMPARED_AT = tuple(
    encode.compare(1 << power, _MARK, 0).index(_MARK.to_bytes(8, "little")) for power in range(4)
)
"""Where what is compared is in an instruction that does, and its address."""


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
def indirect(
    state, image, at, text, begin, end, kind, relative, pieces, bounds, fields, slot, counts, owns, n
):
    """Load the target of an indirect branch into rax and look it up; -1 where that cannot be. It `owns` the
    register that is lent, if it needs that. Its block has `n` instructions."""
    cell = _COUNTERS + slot * 8
    at = put(image, at, pieces, bounds, SAVE_RAX)
    at = put(image, at, pieces, bounds, SAVE_RCX)
    if counts and state[CHARGES]:
        at = count_charged(state, image, at, pieces, bounds, fields, cell, n, False)
    elif counts:
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


@kernel
def jump_to_comparison(state, image, at, pieces, bounds):
    """Write the jump, in an aligned word, that leads to where a fragment compares its code; returns the index
    behind it (see `Emitter.emit`)."""
    while state[BASE] + at & 7:
        image[at] = _NO_PREFIX
        at += 1
    return put(image, at, pieces, bounds, JUMP_PIECE)


@kernel
def compare(state, image, at, text, begin, size, pieces, bounds):
    """Stop if the program's bytes from an offset on are not those copied (see `Emitter._compare_source`)."""
    at = put(image, at, pieces, bounds, SAVE_RAX)
    at = put(image, at, pieces, bounds, SAVE_RCX)
    i = 0
    while i < size:
        address, power = state[MODULE] + begin + i, 3
        while (1 << power) > size - i or address & (1 << power) - 1:
            power -= 1
        value = 0
        for j in range(1 << power):
            value |= int(text[begin + i + j]) << 8 * j
        start = at
        at = put(image, at, pieces, bounds, COMPARE + power)
        write_64(image, start + _COMPARED, -value)
        write_64(image, start + _COMPARED_AT[power], address)
        i += 1 << power
    at = put(image, at, pieces, bounds, LOAD_RCX)
    return put(image, at, pieces, bounds, LOAD_RAX)


@kernel
def put_aside(state, image, at, text, first, made, pieces, bounds):
    """Write the comparisons of the blocks from a row on, and let their fragments lead there; each has a row
    of its own. Returns the index behind."""
    last = state[ROWS]
    for row in range(first, last):
        begin, start = made[row, PC], at
        behind = made[row, START]
        behind += (-(state[BASE] + behind) & 7) + 5
        at = compare(state, image, at, text, begin, made[row, CODE], pieces, bounds)
        at = put(image, at, pieces, bounds, JUMP_PIECE)
        write_32(image, at - 4, behind - at)
        write_32(image, behind - 4, start - behind)
        n = state[ROWS]
        made[n, PC], made[n, START], made[n, BYTES_OF] = begin, start, at - start
        made[n, LENGTH], made[n, CODE], made[n, LIVE] = 0, made[row, CODE], 0
        made[n, SLOW], made[n, AT] = state[COLD], made[row, AT]
        state[ROWS] = n + 1
    return at


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
    if state[CHECKS]:
        at = jump_to_comparison(state, image, at, pieces, bounds)
    if state[FILTERS]:
        state[COLD] += 1  # a thread that has run into a stop is right behind it, and not in a slow path
    elif recorded >= 0:
        at = begin_record(state, image, at, shapes, n, facts, pieces, bounds, fields, places, cell)
    for i in range(n):
        first, end = begin + offsets[i], begin + offsets[i + 1]
        if i == counter:
            at = count(state, image, at, pieces, bounds, fields, borrows, cell, n)
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
            at = indirect(state, image, at, *code, pieces, bounds, fields, slot, counts, owning, n)
            if at < 0:
                return -1, field, leads, falls, returns
            if kind == INDIRECT_CALL:
                returns = end
    return at, field, leads, falls, returns
