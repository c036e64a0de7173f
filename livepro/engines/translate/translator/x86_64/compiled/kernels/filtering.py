"""What leaves out of the event stream what hits in a thread's caches: what `events.filtering` plans and
writes, by compiled code."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.stream.filtering import (
    ENTRY,
    FETCH,
    PAGE,
    PAGE_SHIFT,
    SPAN_SHIFT,
    TAG_SHIFT,
    WITHIN_SHIFT,
)
from livepro.engines.translate import layout
from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.tables import BYTES, COLD, FINE, MODULE, PYTHON, ROWS
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels.fetching import filter_fetch
from livepro.engines.translate.translator.x86_64.compiled.kernels.operands import (
    STORE,
    add_registers,
    add_segment,
    compute,
    in_area,
    lea,
    move,
    registers_of,
    scale_bits,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.recording import known, place_of_access
from livepro.engines.translate.translator.x86_64.compiled.kernels.slow_paths import (
    ABOVE,
    DIFFERENT,
    given_back,
    leave,
    load_execution,
    saved,
    tell_area,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import (
    note,
    put,
    write_32,
    write_64,
)
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ACCESS,
    ACCESS_COLUMNS,
    ACCESS_SIZE,
    ACCESSES,
    BYTES_ACCESSED,
    CALL_ACCESS,
    CODE_LINE,
    DATA_LINE,
    DATA_MASK,
    DISPLACEMENT,
    GIVE_FLAGS_BACK,
    HOLD_FLAGS,
    KILLS,
    LATEST,
    MOST_WORDS,
    MOVES,
    OF,
    PLACE_BASE,
    PLACE_FS,
    PLACE_SCALED,
    PLACES,
    READS,
    REGISTERS_KILLED,
    REGISTERS_READ,
    RELEASE_FLAGS,
    SAVE_FLAGS,
    USED,
    WORD,
)

_ADDRESS, _NEGATED, _RECORD, _CELL, _NUMBER = (
    int(kind) for kind in (Field.ADDRESS, Field.NEGATED, Field.RECORD, Field.CELL, Field.PAGE)
)
_SAVED, _DATA, _CODE = layout.FILTER_SAVED, layout.DATA_LINES, layout.CODE_LINES
_VALUE, _ENTRY, _SPAN_AT, _TAG = layout.ENTRY_VALUE, layout.ENTRY, layout.ENTRY_SPAN, layout.ENTRY_TAG
_PAGE, _PAGE_SHIFT, _FETCH, _PAGE_OF_CODE = PAGE, PAGE_SHIFT, FETCH, layout.PAGE
_RCX, _RDX = 1, 2
_CHUNK, _SPAN, _TAG_AT, _ENTRY_SIZE = layout.RECORD, SPAN_SHIFT - WITHIN_SHIFT, 8 + TAG_SHIFT // 8, 8 * ENTRY
_TO_BORROW = 0xFFFF & ~(1 << 4 | 1 << 12)  # rsp and r12 take another byte as a base


@kernel
def plan_filtered(state, text, begin, offsets, shapes, n, facts, recorded, places, needs, counts, live):
    """See what a block accesses, and where flags are live of which `live` ones are at its end: `places`.
    Returns what came of it."""
    status = known(begin, offsets, shapes, n, recorded, needs, counts)
    if status != FINE:
        return status
    count, word = 0, 1
    for i in range(n):
        row = shapes[i]
        accesses = recorded[row, ACCESSES]
        if word + accesses > MOST_WORDS:
            return PYTHON
        for j in range(accesses):
            size = recorded[row, ACCESS + j * ACCESS_COLUMNS + BYTES_ACCESSED]
            if size > state[DATA_LINE]:
                return PYTHON
            place_of_access(state, text, begin + offsets[i], row, j, recorded, places, count)
            places[count, OF], places[count, WORD], places[count, ACCESS_SIZE] = i, word, size
            word += 1
            count += 1
    state[PLACES], state[LATEST], state[USED] = count, -1, 0
    for i in range(n - 1, -1, -1):
        row = shapes[i]
        live = live & ~facts[row, KILLS] | facts[row, READS]
        state[USED] |= facts[row, REGISTERS_READ] | facts[row, REGISTERS_KILLED]
        places[MOST_WORDS + i, 0] = live
    return FINE


@kernel
def _constant(image, at, register, value):
    """mov r64, imm64"""
    image[at], image[at + 1] = 0x48 | register >> 3, 0xB8 | register & 7
    write_64(image, at + 2, value)
    return at + 10


@kernel
def _and(image, at, register, mask):
    """and r32, imm32"""
    if register >= 8:
        image[at] = 0x41
        at += 1
    image[at], image[at + 1] = 0x81, 0xE0 | register & 7
    write_32(image, at + 2, mask)
    return at + 6


@kernel
def _load_first(image, at, register):
    """mov r64, gs:[r64 + first line of data]"""
    high, low = register >> 3, register & 7
    image[at], image[at + 1], image[at + 2] = 0x65, 0x48 | high << 2 | high, 0x8B
    image[at + 3] = 0x80 | low << 3 | low
    write_32(image, at + 4, _DATA)
    return at + 8


@kernel
def _compare_area(image, at, register, offset):
    """cmp r64, gs:[offset]"""
    return in_area(image, at, 0x3B, register, offset)


@kernel
def _add_place(image, at, places, k, register):
    """Add an address of a base, or of a scaled register, or both."""
    base, scaled, displacement = places[k, PLACE_BASE], places[k, PLACE_SCALED], places[k, DISPLACEMENT]
    if scaled >= 0:
        at = lea(
            image, at, register, register, scaled, scale_bits(places, k), displacement if base < 0 else 0
        )
    if base >= 0:
        at = lea(image, at, register, base, register, 0, displacement)
    return at


@kernel
def _compare(image, at, register, value):
    """cmp r64, imm"""
    image[at], image[at + 2] = 0x48 | register >> 3, 0xF8 | register & 7
    if value < 0x80:
        image[at + 1], image[at + 3] = 0x83, value
        return at + 4
    image[at + 1] = 0x81
    write_32(image, at + 3, value)
    return at + 7


@kernel
def _simulate(state, image, at, pieces, bounds, fields, place, size, scratch, cell, tallied, back):
    """Have an access simulated, whose address is in the scratch register; goes back to an index."""
    at = in_area(image, at, STORE, scratch, _VALUE)
    at = tell_area(image, at, _ENTRY, state[ROWS])
    note(state, fields, _RECORD, at - 4)
    at = tell_area(image, at, _ENTRY + 4, place)
    at = tell_area(image, at, _SPAN_AT, size - 1)
    at = load_execution(state, image, at, fields, scratch, cell, tallied)
    at = in_area(image, at, STORE, scratch, _TAG)
    at = put(image, at, pieces, bounds, CALL_ACCESS)
    image[at] = 0xE9
    write_32(image, at + 1, back - at - 5)
    at += 5
    state[BYTES] += at - state[COLD]
    state[COLD] = at


@kernel
def _address(state, image, at, fields, places, k, to, other):
    """The address of a place, its segment included (for which the other register is used up)."""
    at = compute(state, image, at, fields, places, k, to)
    return add_segment(image, at, to, other) if places[k, PLACE_FS] else at


@kernel
def _filter_access(state, image, at, pieces, bounds, fields, places, k, scratch, other, cell, tallied):
    """Have an access simulated if it is in another line than its set used last."""
    size, where, mask, line = (
        places[k, ACCESS_SIZE],
        places[k, DISPLACEMENT],
        state[DATA_MASK],
        state[DATA_LINE],
    )
    absolute, fs = places[k, PLACE_BASE] < 0 and places[k, PLACE_SCALED] < 0, places[k, PLACE_FS]
    begin = state[COLD]
    if absolute and not fs and mask < _PAGE:
        first, last = where & -line, (where + size - 1) & -line
        while True:
            at = _constant(image, at, scratch, -first)
            if places[k, MOVES]:
                note(state, fields, _NEGATED, at - 8)
            at = _compare_area(image, at, scratch, _DATA + (first & mask))
            at = leave(image, at, DIFFERENT, begin)
            if first == last:
                break
            first = last
    else:
        if fs or absolute:
            at = saved(image, at, other)
            at = _address(state, image, at, fields, places, k, scratch, other)
            at = move(image, at, other, scratch)
            at = _and(image, at, scratch, mask)
            at = _load_first(image, at, scratch)
            at = add_registers(image, at, scratch, other)
            at = given_back(image, at, other)
        else:
            at = compute(state, image, at, fields, places, k, scratch)
            at = _and(image, at, scratch, mask)
            at = _load_first(image, at, scratch)
            at = _add_place(image, at, places, k, scratch)
        at = _compare(image, at, scratch, line - size)
        at = leave(image, at, ABOVE, begin)
    cold = begin
    if fs:
        cold = saved(image, cold, other)
    cold = _address(state, image, cold, fields, places, k, scratch, other)
    if fs:
        cold = given_back(image, cold, other)
    _simulate(
        state, image, cold, pieces, bounds, fields, places[k, WORD], size, scratch, cell, tallied, at,
    )  # fmt: skip
    return at


@kernel
def filter_before(
    state, image, at, pieces, bounds, fields, places, here, told, i, begin, offsets, cell, tallied
):
    """Filter what instruction `i` of the block at `begin` fetches, and accesses: `places` from `here` to
    `told`."""
    first, end = state[MODULE] + begin + offsets[i], state[MODULE] + begin + offsets[i + 1]
    bits = -state[CODE_LINE]
    fetches, lines = True, first
    if first & bits == state[LATEST]:
        fetches, lines = (end - 1) & bits != state[LATEST], end - 1
    if not fetches and here == told:
        return at
    needed = 0
    for k in range(here, told):
        needed |= registers_of(places, k)
    saves, holds = places[MOST_WORDS + i, 0] != 0, not needed & 1
    candidates = _TO_BORROW & ~(needed | 1 if saves else needed)
    if candidates & ~state[USED] & (candidates & ~state[USED]) - 1:  # two of them, at least
        candidates &= ~state[USED]
    count = 0
    for n in range(16):
        count += candidates >> n & 1
    turn = ((begin & _PAGE_OF_CODE - 1) + offsets[i]) * 5 % count
    before = (turn - 1) % count
    scratch = other = at_candidate = 0
    for n in range(16):
        if candidates >> n & 1:
            if at_candidate == turn:
                scratch = n
            if at_candidate == before:
                other = n
            at_candidate += 1
    if saves:
        at = put(image, at, pieces, bounds, HOLD_FLAGS if holds else SAVE_FLAGS)
    if fetches:
        at = filter_fetch(
            state, image, at, pieces, bounds, fields, i, first, end - first, lines, cell, tallied
        )
        state[LATEST] = (end - 1) & bits
    if here < told:
        at = saved(image, at, scratch)
        for k in range(here, told):
            at = _filter_access(
                state, image, at, pieces, bounds, fields, places, k, scratch, other, cell, tallied
            )
        at = given_back(image, at, scratch)
    if saves:
        at = put(image, at, pieces, bounds, RELEASE_FLAGS if holds else GIVE_FLAGS_BACK)
    return at
