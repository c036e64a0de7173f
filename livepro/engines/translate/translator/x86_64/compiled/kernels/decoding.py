"""Lengths and shapes of instructions, and basic blocks: from bytes to rows of facts.

Lengths follow SDM vol. 2, chapter 2 and appendix A (opcode maps). What the maps say need not be trusted:
iced-x86 is asked about each shape once (`shapes`), and a shape whose length it sees otherwise is left to the
translator in Python. Instructions of one shape are as long as each other.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate.translator.compiling.kernels import kernel, within
from livepro.engines.translate.translator.compiling.tables import (
    FINE,
    MOST,
    PYTHON,
    REFUSED,
    WAIT,
    WINDOW_SHIFT,
)
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    INVALID,
    JUMP,
    KILLS,
    KIND,
    LONGEST,
    NATIVE,
    OTHER,
    PLAIN,
    READS,
    RELATIVE,
    RETURN,
    SYSCALL,
)

MODRM, IMM = 1, 1
_IMM8, _IMMZ, _IMM16, _IMMV, _MOFFS, _ENTER, _ODD = 1, 2, 3, 4, 5, 6, 7
_PREFIXES = (0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3)


def _attributes(rows: dict[int, tuple[str, ...]]) -> np.ndarray:
    """A byte for each opcode: whether a ModR/M byte follows, and what immediate."""
    out = np.full(256, _ODD << IMM, np.uint8)
    for attribute, ranges in rows.items():
        for text in ranges:
            first, _, last = text.partition("-")
            out[int(first, 16) : int(last or first, 16) + 1] = attribute
    return out


_ONE = {
    0: (
        *("50-5F", "6C-6F", "90-99", "9B-9F", "A4-A7", "AA-AF", "C3", "C9", "CB", "CC", "CF", "D7"),
        *("EC-EF", "F1", "F4", "F5", "F8-FD"),
    ),
    MODRM: (
        *(f"{row:X}{low}" for row in range(4) for low in ("0", "1", "2", "3", "8", "9", "A", "B")),
        *("63", "84-8F", "D0-D3", "D8-DF", "F6-F7", "FE-FF"),
    ),
    _IMM8 << IMM: (
        *(f"{row:X}{low}" for row in range(4) for low in ("4", "C")),
        *("6A", "70-7F", "A8", "B0-B7", "CD", "E0-E7", "EB"),
    ),
    _IMMZ << IMM: (*(f"{row:X}{low}" for row in range(4) for low in ("5", "D")), "68", "A9", "E8", "E9"),
    MODRM | _IMM8 << IMM: ("6B", "80", "83", "C0-C1", "C6"),
    MODRM | _IMMZ << IMM: ("69", "81", "C7"),
    _IMM16 << IMM: ("C2", "CA"),
    _IMMV << IMM: ("B8-BF",),
    _MOFFS << IMM: ("A0-A3",),
    _ENTER << IMM: ("C8",),
}
_TWO = {
    0: ("05-09", "0B", "0E", "30-37", "77", "A0-A2", "A8-AA", "C8-CF"),
    MODRM: (
        *("00-03", "0D", "10-1F", "28-2F", "40-6F", "74-76", "78-7F", "90-9F", "A3", "A5", "AB", "AD-AF"),
        *("B0-B9", "BB-C1", "C3", "C7", "D0-FF"),
    ),
    MODRM | _IMM8 << IMM: ("0F", "70-73", "A4", "AC", "BA", "C2", "C4-C6"),
    _IMMZ << IMM: ("80-8F",),
}
_VECTOR = {
    0: ("77",),
    MODRM: ("00-6F", "74-76", "78-C1", "C3", "C7-FF"),
    MODRM | _IMM8 << IMM: ("70-73", "C2", "C4-C6"),
}
_MAP_1, _MAP_0F, _MAP_VECTOR = _attributes(_ONE), _attributes(_TWO), _attributes(_VECTOR)

_IS_PREFIX = np.zeros(256, np.uint8)
_IS_PREFIX[list(_PREFIXES)] = 1

# Opcodes of the first map that end a block as a rule: where a shape is not known yet, one looks no further.
_MAY_END = np.zeros(256, np.uint8)
_MAY_END[[*range(0x70, 0x80), *range(0xE0, 0xE4), 0xE8, 0xE9, 0xEB, 0xC2, 0xC3, 0xCC, 0xF1, 0xF4, 0xFF]] = 1


@kernel
def read_32(text, at):
    """The signed 32 bits at an index."""
    value = (
        np.int64(text[at])
        | np.int64(text[at + 1]) << 8
        | np.int64(text[at + 2]) << 16
        | np.int64(text[at + 3]) << 24
    )
    return value - (1 << 32) if value >= 1 << 31 else value


@kernel
def target_of(text, first, end, head):
    """Where the direct branch at `first` leads, whose displacement comes behind `head` bytes."""
    if end - first - head == 1:
        distance = np.int64(text[end - 1])
        return end + (distance - 256 if distance >= 128 else distance)
    return end + read_32(text, end - 4)


@kernel
def measure(text, at):
    """The length of the instruction at an index, with (from bit 8 on, in bytes of 8 bits) the offset behind
    its ModR/M and SIB bytes, the size of its displacement, the size of its immediate, whether it is relative
    to the instruction pointer, whether its immediate belongs to its shape, the offset of its opcode. 0 for
    one that is left to Python."""
    p = at
    narrow = short = wide = False
    b = np.int64(text[p])
    while _IS_PREFIX[b]:
        narrow |= b == 0x66
        short |= b == 0x67
        p += 1
        if p - at > 8:
            return 0
        b = np.int64(text[p])
    if b & 0xF0 == 0x40:
        wide = b & 8 != 0
        p += 1
        b = np.int64(text[p])
        if _IS_PREFIX[b] or b & 0xF0 == 0x40 or b == 0xC4 or b == 0xC5 or b == 0x62:
            return 0
    first_map = False
    if b == 0x0F:
        p += 1
        b = np.int64(text[p])
        if b == 0x38:
            p += 1
            attribute = MODRM
        elif b == 0x3A:
            p += 1
            attribute = MODRM | _IMM8 << IMM
        else:
            attribute = np.int64(_MAP_0F[b])
    elif b == 0xC4 or b == 0xC5 or b == 0x62:
        if b == 0xC5:
            table = 1
            p += 2
        elif b == 0xC4:
            table = np.int64(text[p + 1]) & 0x1F
            p += 3
        else:
            table = np.int64(text[p + 1]) & 7
            p += 4
        if table == 1:
            attribute = np.int64(_MAP_VECTOR[text[p]])
        elif table == 3:
            attribute = MODRM | _IMM8 << IMM
        elif table == 2 or (b == 0x62 and (table == 5 or table == 6)):
            attribute = MODRM
        else:
            return 0
    else:
        if b == 0x8F and text[p + 1] & 0x1F >= 8:
            return 0  # AMD's XOP
        first_map = True
        attribute = np.int64(_MAP_1[b])
    opcode_at = p
    p += 1
    displacement = 0
    relative = 0
    what = attribute >> IMM
    if attribute & MODRM:
        modrm = np.int64(text[p])
        p += 1
        mode, low = modrm >> 6, modrm & 7
        if mode != 3:
            if low == 4:
                base = np.int64(text[p]) & 7
                p += 1
                if mode == 0 and base == 5:
                    displacement = 4
            elif mode == 0 and low == 5:
                displacement = 4
                relative = 1
            if mode == 1:
                displacement = 1
            elif mode == 2:
                displacement = 4
        if first_map and (b == 0xF6 or b == 0xF7) and modrm >> 3 & 7 < 2:
            what = _IMM8 if b == 0xF6 else _IMMZ
    head = p - at
    immediate = 0
    if what == _IMM8:
        immediate = 1
    elif what == _IMMZ:
        immediate = 2 if narrow and not wide else 4
    elif what == _IMM16:
        immediate = 2
    elif what == _IMMV:
        immediate = 8 if wide else (2 if narrow else 4)
    elif what == _MOFFS:
        immediate = 4 if short else 8
    elif what == _ENTER:
        immediate = 3
    elif what == _ODD:
        return 0
    length = head + displacement + immediate
    if length > LONGEST:
        return 0
    # A shift by 0 leaves the flags alone, interrupts are told apart, in the other maps an immediate may be a
    # part of the opcode.
    kept = 1 if immediate == 1 and (not first_map or b == 0xC0 or b == 0xC1 or b == 0xCD) else 0
    return (
        length
        | head << 8
        | displacement << 16
        | immediate << 24
        | relative << 32
        | kept << 40
        | (opcode_at - at) << 48
    )


@kernel
def shape(text, at, measured):
    """The shape of the instruction at an index, as two numbers of 64 bits."""
    head = measured >> 8 & 0xFF
    low = high = np.uint64(0)
    for i in range(min(head, 8)):
        low |= np.uint64(text[at + i]) << np.uint64(8 * i)
    for i in range(8, head):
        high |= np.uint64(text[at + i]) << np.uint64(8 * (i - 8))
    if measured >> 40 & 1:
        high |= np.uint64(text[at + (measured & 0xFF) - 1]) << np.uint64(48)
    return low, high | np.uint64(head) << np.uint64(56)


@kernel
def place_of(lows, highs, low, high):
    """Where a shape is in the hashed table, or is to be put."""
    mask = len(lows) - 1
    mixed = (low ^ high * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xC2B2AE3D27D4EB4F)
    at = np.int64(mixed >> np.uint64(32)) & mask
    while highs[at] != 0 and (lows[at] != low or highs[at] != high):
        at = (at + 1) & mask
    return at


@kernel
def locate(text, at, lows, highs):
    """What `measure` says of the instruction at an index, and where its shape is in the hashed table, or is
    to be put."""
    measured = measure(text, at)
    low, high = shape(text, at, measured)
    return measured, place_of(lows, highs, low, high)


@kernel
def enter(text, at, lows, highs, rows, place, row):
    """Enter the shape of the instruction at an index at its place."""
    lows[place], highs[place] = shape(text, at, measure(text, at))
    rows[place] = row


@within
def decode(text, present, at, lows, highs, rows, facts, offsets, shapes, needs, counts):
    """Decode the basic block at an index: `offsets` of its instructions and of its end, their `shapes` (rows
    of `facts`). Returns (what came of it, instructions). What must be learnt, or read (as -1 - index), is
    added to `needs`, whose number is `counts[0]`."""
    begin, n, known = at, 0, True
    size = len(text)
    while True:
        if at + 16 > size or at - begin > MOST:
            return PYTHON, n
        first, last = present[at >> WINDOW_SHIFT], present[(at + 15) >> WINDOW_SHIFT]
        if first == REFUSED or last == REFUSED:
            return PYTHON, n
        if not (first and last):
            if counts[0] < len(needs):
                needs[counts[0]] = -1 - (at + 15 if first else at)
                counts[0] += 1
            return WAIT, n
        measured = measure(text, at)
        if measured == 0:
            return PYTHON, n
        low, high = shape(text, at, measured)
        place = place_of(lows, highs, low, high)
        offsets[n] = at - begin
        length = measured & 0xFF
        if highs[place] == 0:
            known = False
            if counts[0] == len(needs):
                return WAIT, n
            needs[counts[0]] = at
            counts[0] += 1
            opcode = at + (measured >> 48)
            if _MAY_END[text[opcode]] or (opcode > at and text[opcode - 1] == 0x0F):
                return WAIT, n
            at += length
            n += 1
            continue
        row = rows[place]
        kind = facts[row, KIND]
        shapes[n] = row
        n += 1
        at += length
        offsets[n] = at - begin
        if kind in (PLAIN, RELATIVE):
            continue
        if not known:
            return WAIT, n
        if kind >= JUMP and kind <= RETURN and at - begin <= MOST:
            return FINE, n
        return PYTHON, n


@kernel
def live_in(text, present, at, lows, highs, rows, facts, needs, counts, everything):
    """The flags that the block at an index may read before it has overwritten them; -1 if something must be
    read or learnt first (`needs`)."""
    begin, live, open_ = at, 0, everything
    size = len(text)
    while open_:
        if at + 16 > size or at - begin > MOST:
            break
        first, last = present[at >> WINDOW_SHIFT], present[(at + 15) >> WINDOW_SHIFT]
        if first == REFUSED or last == REFUSED:
            break
        if not (first and last):
            if counts[0] < len(needs):
                needs[counts[0]] = -1 - (at + 15 if first else at)
                counts[0] += 1
            return -1
        measured = measure(text, at)
        if measured == 0:
            break
        low, high = shape(text, at, measured)
        place = place_of(lows, highs, low, high)
        if highs[place] == 0:
            if counts[0] < len(needs):
                needs[counts[0]] = at
                counts[0] += 1
            return -1
        row = rows[place]
        kind = facts[row, KIND]
        if kind in (SYSCALL, NATIVE, INVALID, OTHER):
            break
        live |= facts[row, READS] & open_
        open_ &= ~facts[row, KILLS]
        if kind >= JUMP:
            break
        at += measured & 0xFF
    return live | open_
