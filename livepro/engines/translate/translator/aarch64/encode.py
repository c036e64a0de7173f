"""AArch64 encodings that the translator emits (Arm ARM DDI 0487, C6.2). Pure: words out.

`BASE` is the register that leads to the thread's area while the thread runs
from a cache (see `machine`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.stores import store_32
from livepro.isa.access import ALL_64

BASE = 18
X0, X1 = 0, 1
LINK = 30
SP = ZERO = 31

BRK = 0xD4200000
SVC = 0xD4000001
NOP = 0xD503201F
B = 0x14000000

_HOP = layout.SPILL[3]  # x0 during a far jump


def pack(words: Sequence[int]) -> bytes:
    """The bytes of instruction words."""
    return struct.pack(f"<{len(words)}I", *words)


def link(code: Any, at: int, distance: int) -> bool:
    """Make the word at `code[at]` a branch that leads `distance` bytes on. False if it cannot.

    A B may be replaced by another while threads run there (B2.2.5, "Concurrent
    modification and execution of instructions").
    """
    if -0x800_0000 <= distance < 0x800_0000:
        store_32(code, at, 0x14000000 | distance >> 2 & 0x3FFFFFF)
        return True
    return False


def load(register: int, base: int, offset: int) -> int:
    """ldr xt, [xn, #offset] (a multiple of 8 below 32,768)"""
    return 0xF9400000 | offset >> 3 << 10 | base << 5 | register


def store(register: int, base: int, offset: int) -> int:
    """str xt, [xn, #offset] (a multiple of 8 below 32,768)"""
    return 0xF9000000 | offset >> 3 << 10 | base << 5 | register


def load_pair(one: int, two: int, base: int, offset: int) -> int:
    """ldp xt1, xt2, [xn, #offset] (a multiple of 8 below 512)"""
    return 0xA9400000 | offset >> 3 << 15 | two << 10 | base << 5 | one


def store_pair(one: int, two: int, base: int, offset: int) -> int:
    """stp xt1, xt2, [xn, #offset] (a multiple of 8 below 512)"""
    return 0xA9000000 | offset >> 3 << 15 | two << 10 | base << 5 | one


def move(to: int, source: int) -> int:
    """mov xd, xm"""
    return 0xAA0003E0 | source << 16 | to


def add_immediate(to: int, source: int, amount: int, *, high: bool = False) -> int:
    """add xd, xn, #amount (12 bits; `high`: shifted left by 12); leaves flags alone"""
    return 0x91000000 | high << 22 | amount << 10 | source << 5 | to


def subtract_immediate(to: int, source: int, amount: int, *, high: bool = False) -> int:
    """sub xd, xn, #amount (12 bits; `high`: shifted left by 12)"""
    return 0xD1000000 | high << 22 | amount << 10 | source << 5 | to


def subtract(to: int, one: int, other: int) -> int:
    """sub xd, xn, xm"""
    return 0xCB000000 | other << 16 | one << 5 | to


def add(to: int, one: int, other: int) -> int:
    """add xd, xn, xm"""
    return 0x8B000000 | other << 16 | one << 5 | to


def add_extended(to: int, one: int, other: int, extend: int, shift: int) -> int:
    """add xd, xn, xm, extend #shift (0 to 4), `extend` as the encodings say; register 31 is SP, not as m"""
    return 0x8B200000 | other << 16 | extend << 13 | shift << 10 | one << 5 | to


def keep_bits(to: int, source: int, mask: int) -> int:
    """and xd, xn, #mask, whose bits that are set are side by side, and not all of 64"""
    low, many = (mask & -mask).bit_length() - 1, mask.bit_count()
    return 0x92400000 | (-low & 63) << 16 | many - 1 << 10 | source << 5 | to


def bits(to: int, source: int, low: int, many: int) -> int:
    """ubfx xd, xn, #low, #many"""
    return 0xD3400000 | low << 16 | low + many - 1 << 10 | source << 5 | to


def store_unscaled(register: int, base: int, offset: int) -> int:
    """stur xt, [xn, #offset] (from -256 to 255)"""
    return 0xF8000000 | (offset & 0x1FF) << 12 | base << 5 | register


def constant(register: int, value: int) -> list[int]:
    """movz and as many movk as a 64-bit value needs"""
    value &= ALL_64
    parts = [(shift, value >> 16 * shift & 0xFFFF) for shift in range(4)]
    parts = [part for part in parts if part[1]] or parts[:1]
    first, *others = parts
    out = [0xD2800000 | first[0] << 21 | first[1] << 5 | register]
    return out + [0xF2800000 | shift << 21 | part << 5 | register for shift, part in others]


def page(register: int, at: int, value: int) -> int | None:
    """adrp xd, value's page, from address `at`; None if that is out of reach"""
    pages = (value >> 12) - (at >> 12)
    if not -0x10_0000 <= pages < 0x10_0000:
        return None
    return 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register


def address(register: int, at: int, value: int) -> list[int]:
    """Words that put an address into a register, to stand at `at`"""
    adrp = page(register, at, value)
    if adrp is None:
        return constant(register, value)
    low = value & 0xFFF
    return [adrp, add_immediate(register, register, low)] if low else [adrp]


def branch(distance: int) -> int:
    """b, `distance` bytes on"""
    return 0x14000000 | distance >> 2 & 0x3FFFFFF


def branch_if_zero(register: int, distance: int) -> int:
    """cbz xt"""
    return 0xB4000000 | (distance >> 2 & 0x7FFFF) << 5 | register


def branch_if_not_zero(register: int, distance: int) -> int:
    """cbnz xt"""
    return 0xB5000000 | (distance >> 2 & 0x7FFFF) << 5 | register


def branch_if_positive(register: int, distance: int) -> int:
    """tbz xt, #63"""
    return 0xB6F80000 | (distance >> 2 & 0x3FFF) << 5 | register


def branch_register(register: int) -> int:
    """br xn"""
    return 0xD61F0000 | register << 5


def load_here(register: int, distance: int) -> int:
    """ldr xt, `distance` bytes on"""
    return 0x58000000 | (distance >> 2 & 0x7FFFF) << 5 | register


def lookup(table: int) -> list[int]:
    """Go where the table entry of x0's bits 17:2 says, through x1. The table is aligned to
    its 512 KiB and lies below 4 GiB."""
    return [
        0xD2A00000 | table >> 16 << 5 | X1,  # movz x1, #table >> 16, lsl #16
        0xB37F4400 | X0 << 5 | X1,  # bfi x1, x0, #1, #18
        0x927DF000 | X1 << 5 | X1,  # and x1, x1, #-8: low bits of a misaligned target
        load(X1, X1, 0),
        branch_register(X1),
    ]


def jump_far_away(target: int) -> bytes:
    """A jump that reaches anywhere, at an address divisible by 8. No register is free: x0 is
    kept in the area, and `ARRIVAL` must stand at the target."""
    words = [store(X0, BASE, _HOP), load_here(X0, 12), branch_register(X0), NOP]
    return pack(words) + target.to_bytes(8, "little")


def low_halfword(to: int, source: int) -> int:
    """and xd, xn, #0xffff"""
    return 0x92403C00 | source << 5 | to


def load_byte_indexed(to: int, base: int, index: int) -> int:
    """ldrb wt, [xn, xm]"""
    return 0x38606800 | index << 16 | base << 5 | to


ARRIVAL = pack([load(X0, BASE, _HOP)])
"""What must stand where `jump_far_away` leads."""
