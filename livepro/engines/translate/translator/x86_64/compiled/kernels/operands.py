"""Operands in memory: where they are, and the instructions that compute that."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import note, write_32, write_64
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    DISPLACEMENT,
    MOVES,
    PLACE_BASE,
    PLACE_SCALE,
    PLACE_SCALED,
)

_ADDRESS = int(Field.ADDRESS)
_RSP, _RBP = 4, 5
LOAD, STORE = 0x8B, 0x89
"""Opcodes of `in_area`."""


@kernel
def signed_at(text, at, size):
    """The signed number of some bytes at an index."""
    if size == 0:
        return np.int64(0)
    value = np.int64(0)
    for i in range(size):
        value |= np.int64(text[at + i]) << 8 * i
    bits = 8 * size
    return value - (1 << bits) if size < 8 and value >> (bits - 1) & 1 else value


@kernel
def registers_of(places, k):
    """The mask of the registers that an address needs."""
    mask = 0
    if places[k, PLACE_BASE] >= 0:
        mask |= 1 << places[k, PLACE_BASE]
    if places[k, PLACE_SCALED] >= 0:
        mask |= 1 << places[k, PLACE_SCALED]
    return mask


@kernel
def in_area(image, at, opcode, register, offset):
    """mov gs:[offset], r64 or the other way round; returns the index behind it, as all of these."""
    image[at], image[at + 1], image[at + 2] = 0x65, 0x48 | register >> 3 << 2, opcode
    image[at + 3], image[at + 4] = 0x04 | (register & 7) << 3, 0x25
    write_32(image, at + 5, offset)
    return at + 9


@kernel
def advance(image, at, register, amount):
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
def store_indirect(image, at, register, pointer, displacement):
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
def scale_bits(places, k):
    """The scale of an address as an instruction has it: 0 for 1, 3 for 8."""
    bits = 0
    while 1 << bits < places[k, PLACE_SCALE]:
        bits += 1
    return bits


@kernel
def compute(state, image, at, fields, places, k, to):
    """lea to, [place], without its segment."""
    base, scaled, displacement = places[k, PLACE_BASE], places[k, PLACE_SCALED], places[k, DISPLACEMENT]
    if base < 0 and scaled < 0:
        image[at], image[at + 1] = 0x48 | to >> 3, 0xB8 | to & 7
        write_64(image, at + 2, displacement)
        if places[k, MOVES]:
            note(state, fields, _ADDRESS, at + 2)
        return at + 10
    return lea(image, at, to, base, scaled, scale_bits(places, k) if scaled >= 0 else 0, displacement)


@kernel
def lea(image, at, to, base, scaled, bits, displacement):
    """lea r64, [base + (scaled << bits) + displacement], as short as it can be; a register is -1 if there is
    none."""
    rex, index, modrm = 0x48 | to >> 3 << 2, _RSP, (to & 7) << 3
    if scaled >= 0:
        index, rex = scaled & 7 | bits << 3, rex | scaled >> 3 << 1
    if base < 0:
        image[at], image[at + 1], image[at + 2], image[at + 3] = rex, 0x8D, modrm | 4, index << 3 | 5
        write_32(image, at + 4, displacement)
        return at + 8
    image[at], image[at + 1] = rex | base >> 3, 0x8D
    size, mode = 4, 0x80
    if displacement == 0 and base & 7 != _RBP:
        size, mode = 0, 0x00
    elif displacement >= -0x80 and displacement < 0x80:
        size, mode = 1, 0x40
    if scaled < 0 and base & 7 != _RSP:
        image[at + 2] = mode | modrm | base & 7
        at += 3
    else:
        image[at + 2], image[at + 3] = mode | 4 | modrm, index << 3 | base & 7
        at += 4
    if size == 1:
        image[at] = displacement & 0xFF
    elif size == 4:
        write_32(image, at, displacement)
    return at + size


@kernel
def add_registers(image, at, to, register):
    """lea to, [to + register]"""
    return lea(image, at, to, to, register, 0, 0)


@kernel
def add_segment(image, at, to, other):
    """rdfsbase other; lea to, [to + other]"""
    image[at], image[at + 1] = 0xF3, 0x48 | other >> 3
    image[at + 2], image[at + 3], image[at + 4] = 0x0F, 0xAE, 0xC0 | other & 7
    return add_registers(image, at + 5, to, other)


@kernel
def move(image, at, to, register):
    """mov r64, r64"""
    image[at], image[at + 1] = 0x48 | register >> 3 << 2 | to >> 3, 0x89
    image[at + 2] = 0xC0 | (register & 7) << 3 | to & 7
    return at + 3


@kernel
def first_of(mask):
    """The lowest bit that is set."""
    n = 0
    while not mask >> n & 1:
        n += 1
    return n
