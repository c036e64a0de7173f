"""A memory operand of an event in one word: instruction, size in bytes, and slot.

The lowest two bits are the slot, the next thirty the size, those above the instruction's number.
"""

from __future__ import annotations

from numba import njit

READ1, READ2, WRITE, REWRITE = range(4)
"""Slots of an instruction's memory operands: the first read, another one, a write, and one of bytes that
the same operand has just read."""


@njit(nogil=True, cache=True)
def described(instruction: int, size: int, slot: int) -> int:
    """The word of an operand."""
    return instruction << 32 | size << 2 | slot


@njit(nogil=True, cache=True)
def slot_of(word: int) -> int:
    """The slot."""
    return word & 3


@njit(nogil=True, cache=True)
def size_of(word: int) -> int:
    """The size in bytes."""
    return word >> 2 & 0x3FFFFFFF


@njit(nogil=True, cache=True)
def instruction_of(word: int) -> int:
    """The number of the instruction."""
    return word >> 32
