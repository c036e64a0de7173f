"""What the slow paths of filters are made of, by compiled code."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels.operands import (
    LOAD,
    STORE,
    advance,
    in_area,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import note, write_32

_CELL, _SAVED = int(Field.CELL), layout.FILTER_SAVED
DIFFERENT, ABOVE = 0x85, 0x87
"""Conditions of `leave`."""


@kernel
def saved(image, at, register):
    """Borrow a register."""
    return in_area(image, at, STORE, register, _SAVED + 8 * register)


@kernel
def given_back(image, at, register):
    """Give it back."""
    return in_area(image, at, LOAD, register, _SAVED + 8 * register)


@kernel
def with_number(image, at, opcode, digit, offset, value):
    """An instruction on a dword gs:[offset] and 32 bits; its digit is a part of its opcode."""
    image[at], image[at + 1], image[at + 2], image[at + 3] = 0x65, opcode, digit << 3 | 4, 0x25
    write_32(image, at + 4, offset)
    write_32(image, at + 8, value)
    return at + 12


@kernel
def leave(image, at, condition, to):
    """jcc rel32, to an index"""
    image[at], image[at + 1] = 0x0F, condition
    write_32(image, at + 2, to - at - 6)
    return at + 6


@kernel
def tell_area(image, at, offset, value):
    """mov dword gs:[offset], imm32"""
    return with_number(image, at, 0xC7, 0, offset, value)


@kernel
def load_execution(state, image, at, fields, to, cell, tallied):
    """Load which execution of the block it is: movzx r32, word gs:[cell]"""
    image[at], image[at + 1], image[at + 2], image[at + 3] = 0x65, 0x40 | to >> 3 << 2, 0x0F, 0xB7
    image[at + 4], image[at + 5] = 0x04 | (to & 7) << 3, 0x25
    write_32(image, at + 6, cell)
    note(state, fields, _CELL, at + 6)
    return at + 10 if tallied else advance(image, at + 10, to, 1)
