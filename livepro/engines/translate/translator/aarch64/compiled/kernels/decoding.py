"""Basic blocks of AArch64 code: what is to be done with each word, and the registers that it mentions."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate.translator.aarch64 import facts
from livepro.engines.translate.translator.aarch64.compiled.tables import (
    ADDRESS,
    BRANCH,
    CALL,
    INDIRECT_CALL,
    INDIRECT_JUMP,
    JUMP,
    KILLS,
    KIND,
    LITERAL,
    MENTIONS,
    OTHER,
    PLAIN,
    RETURN,
)
from livepro.engines.translate.translator.aarch64.encode import BASE
from livepro.engines.translate.translator.compiling.kernels import alike, kernel, within
from livepro.engines.translate.translator.compiling.tables import (
    FINE,
    MOST,
    NEEDS,
    PYTHON,
    REFUSED,
    WAIT,
    WINDOW_SHIFT,
)

registers_of = alike(*facts.REGISTERS)
_BRANCHES = facts.BRANCHES_BY_REGISTER


@kernel
def signed(field, bits):
    """A field's number, in two's complement."""
    field &= (1 << bits) - 1
    return field - (1 << bits) if field >> bits - 1 else field


@kernel
def distance_of(word):
    """The bytes from a direct branch to where it leads."""
    top = word >> 24 & 0x7F
    if top & 0x7C == 0x14:
        return signed(word, 26) * 4
    if top == 0x36 or top == 0x37:
        return signed(word >> 5, 14) * 4
    return signed(word >> 5, 19) * 4


@kernel
def kind_of(word):
    """What is to be done with an instruction; `OTHER` where it is left to Python (see `facts`)."""
    top = word >> 24
    group = top >> 1 & 15
    if group == 1 or group == 3 or (group == 0 and top < 0x80):
        return OTHER
    if top & 0x1C == 0x14:  # branches, exceptions, system instructions
        if top & 0x7C == 0x14:
            return CALL if top >> 7 else JUMP
        size = top & 0x7F
        if size >= 0x34 and size <= 0x37:
            return OTHER if word & 31 == BASE else BRANCH
        if top == 0x54:
            return BRANCH
        if top == 0xD5:
            return OTHER if word & 0xFFFFF0FF == 0xD503305F else PLAIN  # CLREX
        if top != 0xD6 or word >> 5 & 31 == BASE:
            return OTHER
        branch = word & 0xFFFFFC1F
        if branch == _BRANCHES[0]:
            return INDIRECT_JUMP
        if branch == _BRANCHES[1]:
            return INDIRECT_CALL
        return RETURN if branch == _BRANCHES[2] else OTHER
    if word & 0x1F000000 == 0x10000000:
        return OTHER if word & 31 == BASE else ADDRESS
    if word & 0x3B000000 == 0x18000000:
        if top == 0xDC or (word & 31 == BASE and not top & 4 and top >> 6 != 3):
            return OTHER
        return LITERAL
    if word & 0x3EC00000 in (0x08000000, 0x08400000) and (not word >> 21 & 1 or word >> 31):
        return OTHER  # exclusive
    if word & 0xFFFF801F == 0xDAC1801E or word & 0xFF80001F in (0xF380001F, 0xF380001E):
        return OTHER  # the pc goes into an authentication code
    return PLAIN


@within
def decode(state, text, present, pc, decoded, needs):
    """Decode the basic block at an offset: its instructions' kinds and registers. Returns (what came of it,
    instructions). What must be read (as -1 - offset) is added to `needs`."""
    at, n = pc, 0
    if pc & 3:
        return PYTHON, 0
    while True:
        if at >= 4 * len(text) or at - pc >= MOST:
            return PYTHON, n
        page = present[at >> WINDOW_SHIFT]
        if page == REFUSED:
            return PYTHON, n
        if page == 0:
            if state[NEEDS] < len(needs):
                needs[state[NEEDS]] = -1 - at
                state[NEEDS] += 1
            return WAIT, n
        word = np.int64(text[at >> 2])
        kind = kind_of(word)
        if kind == OTHER:
            return PYTHON, n
        mentions, kills = registers_of(word)
        if kind == PLAIN and mentions >> BASE & 1:
            return PYTHON, n
        decoded[n, KIND], decoded[n, MENTIONS] = kind, mentions
        decoded[n, KILLS] = kills if kind <= ADDRESS else 0
        n += 1
        at += 4
        if kind >= JUMP:
            return FINE, n
