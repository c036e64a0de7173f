"""Records of blocks: what `events.recording` plans and writes, by compiled code."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels import kernel
from livepro.engines.translate.translator.x86_64.compiled.kernels.decoding import (
    measure,
    place_of,
    shape,
    target_of,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import (
    add_one,
    note,
    put,
    write_32,
    write_64,
)
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ACCESS,
    ACCESS_COLUMNS,
    ACCESSES,
    BRANCH,
    BY,
    BY_IMMEDIATE,
    BYTES_ACCESSED,
    CALL,
    CAN,
    CONSTANT,
    COUNTED,
    DISPLACEMENT,
    EARLY,
    FACTOR,
    FAULTS,
    FINE,
    FLOW,
    FROM_HERE,
    FS,
    FULL,
    HEAD,
    JUMP,
    KIND,
    KIND_OF,
    MODULE,
    MOST_WORDS,
    MOVED,
    MOVES,
    NO,
    OF,
    OPERAND_BASE,
    OPERAND_SCALE,
    OPERAND_SCALED,
    PLACE_BASE,
    PLACE_FS,
    PLACE_SCALE,
    PLACE_SCALED,
    PLACES,
    PLAIN,
    PYTHON,
    REGISTERS_KILLED,
    REGISTERS_READ,
    ROWS,
    UNKNOWN,
    WAIT,
    WORD,
    WORDS,
    WRITTEN,
)
from livepro.engines.translate.translator.x86_64.events.recording import AT_START, FARTHEST

_ADDRESS, _RECORD = int(Field.ADDRESS), int(Field.RECORD)
_RECORDED_AT, _SPILLED, _VALUE_SPILLED = layout.RECORD, layout.SPILL[1], layout.SPILL[0]
_RCX, _RSP, _R12 = 1, 4, 12
_LOAD, _STORE = 0x8B, 0x89
_REACH = 1 << 31
NOWHERE = -(1 << 63)


@kernel
def _signed_at(text, at, size):
    """The signed number of some bytes at an index."""
    if size == 0:
        return np.int64(0)
    value = np.int64(0)
    for i in range(size):
        value |= np.int64(text[at + i]) << 8 * i
    bits = 8 * size
    return value - (1 << bits) if size < 8 and value >> (bits - 1) & 1 else value


@kernel
def _registers(places, k):
    """The mask of the registers that an address needs."""
    mask = 0
    if places[k, PLACE_BASE] >= 0:
        mask |= 1 << places[k, PLACE_BASE]
    if places[k, PLACE_SCALED] >= 0:
        mask |= 1 << places[k, PLACE_SCALED]
    return mask


@kernel
def plan(state, text, begin, offsets, shapes, n, recorded, places, moved, needs, counts):
    """See what is recorded of a block: `places`. Returns what came of it."""
    status = FINE
    for i in range(n):
        can = recorded[shapes[i], CAN]
        if can == UNKNOWN:
            if counts[0] == len(needs):
                return WAIT
            needs[counts[0]] = begin + offsets[i]
            counts[0] += 1
            status = WAIT
        elif can == NO:
            return PYTHON
    if status != FINE:
        return status
    for i in range(16):
        moved[i] = 0
    lost = needed = count = 0
    word = 1
    for i in range(n):
        row = shapes[i]
        accesses = recorded[row, ACCESSES]
        at = begin + offsets[i]
        measured = displacement = 0
        if accesses or recorded[row, BY_IMMEDIATE]:
            measured = measure(text, at)
            displacement = _signed_at(text, at + (measured >> 8 & 0xFF), measured >> 16 & 0xFF)
        if word + accesses > MOST_WORDS:
            return PYTHON
        for j in range(accesses):
            column = ACCESS + j * ACCESS_COLUMNS
            base, scaled = recorded[row, column + OPERAND_BASE], recorded[row, column + OPERAND_SCALED]
            scale, moves = recorded[row, column + OPERAND_SCALE], recorded[row, column + FROM_HERE]
            where = recorded[row, column + CONSTANT] + recorded[row, column + FACTOR] * displacement
            if moves:
                where += state[MODULE] + at
            places[count, OF], places[count, WORD] = i, word
            places[count, PLACE_BASE], places[count, PLACE_SCALED] = base, scaled
            places[count, PLACE_SCALE], places[count, MOVES] = scale, moves
            places[count, PLACE_FS] = recorded[row, column + FS]
            registers = _registers(places, count)
            more = 0
            if base >= 0:
                more = moved[base]
            if scaled >= 0:
                more += moved[scaled] * scale
            early = registers & lost == 0 and (AT_START & ~(needed | registers)) != 0
            if more and (where + more < -_REACH or where + more >= _REACH):
                early = False
            if early:
                where += more
                needed |= registers
            places[count, EARLY], places[count, DISPLACEMENT] = early, where
            word += 1
            count += 1
        lost |= recorded[row, WRITTEN]
        register = recorded[row, MOVED]
        if register >= 0:
            by = recorded[row, BY]
            if recorded[row, BY_IMMEDIATE]:
                field = (measured >> 8 & 0xFF) + (measured >> 16 & 0xFF)
                by += recorded[row, BY_IMMEDIATE] * _signed_at(text, at + field, measured >> 24 & 0xFF)
            moved[register] += by
            if moved[register] <= -FARTHEST or moved[register] >= FARTHEST:
                lost |= 1 << register
    state[PLACES], state[WORDS] = count, word
    return FINE


@kernel
def _area(image, at, opcode, register, offset):
    """mov gs:[offset], r64 or the other way round; returns the index behind it, as all of these."""
    image[at], image[at + 1], image[at + 2] = 0x65, 0x48 | register >> 3 << 2, opcode
    image[at + 3], image[at + 4] = 0x04 | (register & 7) << 3, 0x25
    write_32(image, at + 5, offset)
    return at + 9


@kernel
def _advance(image, at, register, amount):
    """lea r64, [r64 + amount]"""
    high, modrm = register >> 3, (register & 7) << 3 | register & 7
    image[at], image[at + 1] = 0x48 | high << 2 | high, 0x8D
    if amount < 0x80:
        image[at + 2], image[at + 3] = 0x40 | modrm, amount
        return at + 4
    image[at + 2] = 0x80 | modrm
    write_32(image, at + 3, amount)
    return at + 7


@kernel
def _store(image, at, register, pointer, displacement):
    """mov gs:[pointer + displacement], register"""
    image[at], image[at + 1], image[at + 2] = 0x65, 0x48 | register >> 3 << 2 | pointer >> 3, 0x89
    modrm = (register & 7) << 3 | pointer & 7
    if displacement >= -0x80 and displacement < 0x80:
        image[at + 3], image[at + 4] = 0x40 | modrm, displacement & 0xFF
        return at + 5
    image[at + 3] = 0x80 | modrm
    write_32(image, at + 4, displacement)
    return at + 8


@kernel
def _compute(state, image, at, fields, places, k, to):
    """lea to, [place], without its segment."""
    base, scaled, displacement = places[k, PLACE_BASE], places[k, PLACE_SCALED], places[k, DISPLACEMENT]
    if base < 0 and scaled < 0:
        image[at], image[at + 1] = 0x48 | to >> 3, 0xB8 | to & 7
        write_64(image, at + 2, displacement)
        if places[k, MOVES]:
            note(state, fields, _ADDRESS, at + 2)
        return at + 10
    high = to >> 3 << 2
    if scaled < 0 and base & 7 != _RSP:
        image[at], image[at + 1] = 0x48 | high | base >> 3, 0x8D
        image[at + 2] = 0x80 | (to & 7) << 3 | base & 7
        write_32(image, at + 3, displacement)
        return at + 7
    index, scale = _RSP, 0
    if scaled >= 0:
        index = scaled
        while 1 << scale < places[k, PLACE_SCALE]:
            scale += 1
    high |= index >> 3 << 1 if scaled >= 0 else 0
    image[at + 1] = 0x8D
    if base < 0:
        image[at], image[at + 2] = 0x48 | high, 0x04 | (to & 7) << 3
        image[at + 3] = scale << 6 | (index & 7) << 3 | 5
    else:
        image[at], image[at + 2] = 0x48 | high | base >> 3, 0x84 | (to & 7) << 3
        image[at + 3] = scale << 6 | (index & 7) << 3 | base & 7
    write_32(image, at + 4, displacement)
    return at + 8


@kernel
def _add_segment(image, at, to, other):
    """rdfsbase other; lea to, [to + other]"""
    image[at], image[at + 1] = 0xF3, 0x48 | other >> 3
    image[at + 2], image[at + 3], image[at + 4] = 0x0F, 0xAE, 0xC0 | other & 7
    at += 5
    image[at], image[at + 1] = 0x48 | to >> 3 << 2 | other >> 3 << 1 | to >> 3, 0x8D
    image[at + 2], image[at + 3], image[at + 4] = 0x44 | (to & 7) << 3, (other & 7) << 3 | to & 7, 0
    return at + 5


@kernel
def _first_of(mask):
    """The lowest bit that is set."""
    n = 0
    while not mask >> n & 1:
        n += 1
    return n


@kernel
def _free_at_start(shapes, n, facts):
    """Registers that a block overwrites before anything reads them or may fault."""
    read = free = 0
    for i in range(n):
        row = shapes[i]
        if facts[row, FAULTS] or facts[row, KIND] != PLAIN:
            break
        read |= facts[row, REGISTERS_READ]
        free |= facts[row, REGISTERS_KILLED] & ~read
        read |= facts[row, REGISTERS_KILLED]
    return free


@kernel
def begin_record(state, image, at, shapes, n, facts, pieces, bounds, fields, places, cell):
    """Begin a block's record, and count the block."""
    count, words = state[PLACES], state[WORDS]
    needed, any_early = 0, False
    for k in range(count):
        if places[k, EARLY]:
            needed |= _registers(places, k)
            any_early = True
    value, spilled = 0, False
    at = _area(image, at, _STORE, _RCX, _SPILLED)
    if any_early:
        candidates = AT_START & ~needed
        free = candidates & _free_at_start(shapes, n, facts)
        value = _first_of(free if free else candidates)
        if not free:
            at = _area(image, at, _STORE, value, _VALUE_SPILLED)
            spilled = True
        for k in range(count):
            if places[k, EARLY] and _registers(places, k) >> _RCX & 1:
                at = _compute(state, image, at, fields, places, k, value)
                if places[k, PLACE_FS]:
                    at = _add_segment(image, at, value, _RCX)
                at = _area(image, at, _LOAD, _RCX, _RECORDED_AT)
                at = _store(image, at, value, _RCX, 8 * places[k, WORD])
                at = _area(image, at, _LOAD, _RCX, _SPILLED)
    at = _area(image, at, _LOAD, _RCX, _RECORDED_AT)
    image[at], image[at + 1], image[at + 2], image[at + 3] = 0x65, 0x48, 0xC7, _RCX
    write_32(image, at + 4, state[ROWS])
    note(state, fields, _RECORD, at + 4)
    at += 8
    for k in range(count):
        if not places[k, EARLY] or _registers(places, k) >> _RCX & 1:
            continue
        at = _compute(state, image, at, fields, places, k, value)
        if places[k, PLACE_FS]:
            at = _add_segment(image, at, value, _RCX)
            at = _area(image, at, _LOAD, _RCX, _RECORDED_AT)
        at = _store(image, at, value, _RCX, 8 * places[k, WORD])
    if spilled:
        at = _area(image, at, _LOAD, value, _VALUE_SPILLED)
    at = _advance(image, at, _RCX, 8 * words)
    at = _area(image, at, _STORE, _RCX, _RECORDED_AT)
    at = put(image, at, pieces, bounds, FULL)
    at = add_one(state, image, at, pieces, bounds, fields, _RCX, cell)
    return _area(image, at, _LOAD, _RCX, _SPILLED)


@kernel
def record_before(state, image, at, fields, places, first, last):
    """Put words into the record that was begun at the block's start: those of `places` from `first` to
    `last` that could not be told there."""
    needed, some = 0, False
    for k in range(first, last):
        if not places[k, EARLY]:
            needed |= _registers(places, k)
            some = True
    if not some:
        return at
    others = ~(needed | 1 << _RSP | 1 << _R12) & 0xFFFF
    pointer = _first_of(others)
    value = _first_of(others & ~(1 << pointer))
    at = _area(image, at, _STORE, value, _VALUE_SPILLED)
    at = _area(image, at, _STORE, pointer, _SPILLED)
    for k in range(first, last):
        if places[k, EARLY]:
            continue
        at = _compute(state, image, at, fields, places, k, value)
        if places[k, PLACE_FS]:
            at = _add_segment(image, at, value, pointer)
        at = _area(image, at, _LOAD, pointer, _RECORDED_AT)
        at = _store(image, at, value, pointer, 8 * (places[k, WORD] - state[WORDS]))
    at = _area(image, at, _LOAD, pointer, _SPILLED)
    return _area(image, at, _LOAD, value, _VALUE_SPILLED)


@kernel
def tell(
    text, at, counts, lows, highs, rows, facts, recorded, steps, flows, accesses, sizes, kinds, words, to
):
    """What is static of blocks at these offsets that have so many instructions: of each instruction the size,
    flow and how many accesses; of these the bytes and kinds; of each block the words of its record and where
    its last instruction leads (`to`, an offset in the module). Returns how many accesses there are."""
    n = m = 0
    for i in range(len(at)):
        here, total, last = at[i], 1, 0
        for _ in range(counts[i]):
            measured = measure(text, here)
            low, high = shape(text, here, measured)
            row = rows[place_of(lows, highs, low, high)]
            steps[n] = measured & 0xFF
            flows[n] = recorded[row, FLOW]
            accesses[n] = recorded[row, ACCESSES]
            for j in range(recorded[row, ACCESSES]):
                sizes[m] = recorded[row, ACCESS + j * ACCESS_COLUMNS + BYTES_ACCESSED]
                kinds[m] = recorded[row, ACCESS + j * ACCESS_COLUMNS + KIND_OF]
                m += 1
            total += accesses[n]
            last = here
            here += steps[n]
            n += 1
        words[i], to[i] = total, NOWHERE
        kind = facts[row, KIND]
        if kind in (JUMP, BRANCH, COUNTED, CALL):
            to[i] = target_of(text, last, here, facts[row, HEAD])
    return m
