"""Addresses of operands: what they are computed from, and the instructions that do."""

from __future__ import annotations

import struct
from typing import NamedTuple

from iced_x86 import Register

from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64 import encode
from livepro.isa.access import ALL_64, Access, Pattern
from livepro.isa.x86_64.accesses import Operand

_FS = "fs_base"
RSP, RBP = 4, 5

NUMBERS = {
    getattr(Register, name.upper()): number
    for number, name in enumerate(
        ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))
    )
}
_ADDRESSING = NUMBERS | {
    getattr(Register, name.upper()): number
    for number, name in enumerate(
        ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", *(f"r{n}d" for n in range(8, 16)))
    )
}


class Place(NamedTuple):
    """An address to be computed: registers by number (-1: none), `short` for 32-bit addresses; `fs` says
    that the segment's base is added, `moves` that the displacement is an address of the program's, which is
    another one wherever its module is. `word` is its place in the record."""

    word: int
    base: int
    scaled: int
    scale: int
    displacement: int
    short: bool
    fs: bool
    moves: bool

    @property
    def registers(self) -> int:
        """Mask of the registers that it needs."""
        base = 1 << self.base if self.base >= 0 else 0
        return base | 1 << self.scaled if self.scaled >= 0 else base  # they may be the same one


class Mask(NamedTuple):
    """An opmask register to be stored."""

    word: int
    register: int


def places_of(
    accesses: tuple[Access, ...], word: int, relative: bool
) -> tuple[list[Place | Mask], list[Place]] | None:
    """What to compute before and behind an instruction, which may have an operand `relative` to where it
    is; None if that takes the tracer."""
    before: list[Place | Mask] = []
    behind: list[Place] = []
    for access in accesses:
        where: Operand = access.where
        place = _place(where, word, relative)
        if place is None:
            return None
        if access.pattern is Pattern.ONE and not where.offset:
            before.append(place)
        elif access.pattern is Pattern.STRING:
            before.append(place)
            behind.append(place._replace(word=word + 1))
        elif access.pattern in (Pattern.MASKED, Pattern.PACKED) and (Register.K0 < where.mask <= Register.K7):
            before.append(place)
            before.append(Mask(word + 1, where.mask - Register.K0))
        else:
            return None
        word += access.words
    return before, behind


def _place(where: Operand, word: int, relative: bool) -> Place | None:
    base, scaled = _number(where.base), _number(where.scaled)
    if base is None or scaled is None or where.segment not in ("", _FS):
        return None
    displacement = where.displacement
    displacement -= (1 << 64) if displacement >> 63 else 0
    short, moves = where.bits == 32, relative and base < 0 and scaled < 0 and where.bits == 64
    return Place(word, base, scaled, where.scale, displacement, short, where.segment == _FS, moves)


def _number(register: int) -> int | None:
    """The number of a register of an operand, -1 for none that changes, None for one of less than
    32 bits."""
    if register in (Register.NONE, Register.RIP, Register.EIP):
        return -1
    return _ADDRESSING.get(register)


# -- encodings (SDM vol. 2)


def others(needed: int) -> list[int]:
    """Registers that may be borrowed where some (a mask) are needed. Not rsp and r12, which as a base take
    another byte."""
    return [n for n in range(16) if not needed >> n & 1 and n not in (RSP, 12)]


def compute(out: bytearray, fields: list[tuple[Field, int]], place: Place, to: int) -> None:
    """lea to, [place], without its segment."""
    if place.base < 0 and place.scaled < 0:
        out += encode.move_absolute(to, place.displacement & (0xFFFF_FFFF if place.short else ALL_64))
        if place.moves:
            fields.append((Field.ADDRESS, len(out) - 8))
        return
    if place.short:
        out += b"\x67"
    displacement = place.displacement if place.displacement < 1 << 31 else place.displacement - (1 << 32)
    out += lea(to, place.base, place.scaled, place.scale, displacement)


def lea(to: int, base: int, scaled: int, scale: int, displacement: int) -> bytes:
    """lea r64, [base + scaled * scale + displacement], as short as it can be. One of the registers may be
    missing (-1); rsp cannot be scaled."""
    rex, reg = 0x48 | to >> 3 << 2, (to & 7) << 3
    index = RSP  # 100: none
    if scaled >= 0:
        index = scaled & 7 | {1: 0, 2: 1, 4: 2, 8: 3}[scale] << 3
        rex |= scaled >> 3 << 1
    if base < 0:
        return bytes((rex, 0x8D, 0x04 | reg, index << 3 | 5)) + struct.pack("<i", displacement)
    rex |= base >> 3
    if displacement == 0 and base & 7 != RBP:
        mode, behind = 0x00, b""
    elif -0x80 <= displacement < 0x80:
        mode, behind = 0x40, bytes((displacement & 0xFF,))
    else:
        mode, behind = 0x80, struct.pack("<i", displacement)
    if scaled < 0 and base & 7 != RSP:
        return bytes((rex, 0x8D, mode | reg | base & 7)) + behind
    return bytes((rex, 0x8D, mode | 4 | reg, index << 3 | base & 7)) + behind


def store_indirect(register: int, pointer: int, displacement: int) -> bytes:
    """mov gs:[pointer + displacement], register (pointer: not rsp, r12)"""
    rex = 0x48 | register >> 3 << 2 | pointer >> 3
    if -0x80 <= displacement < 0x80:
        return bytes((0x65, rex, 0x89, 0x40 | (register & 7) << 3 | pointer & 7, displacement & 0xFF))
    return bytes((0x65, rex, 0x89, 0x80 | (register & 7) << 3 | pointer & 7)) + struct.pack(
        "<i", displacement
    )


def add_registers(to: int, register: int) -> bytes:
    """lea to, [to + register]"""
    return lea(to, to, register, 1, 0)


def read_fs(register: int) -> bytes:
    """rdfsbase r64"""
    return bytes((0xF3, 0x48 | register >> 3, 0x0F, 0xAE, 0xC0 | register & 7))


def move_mask(register: int, mask: int) -> bytes:
    """kmovq r64, k"""
    return bytes((0xC4, 0x61 if register >= 8 else 0xE1, 0xFB, 0x93, 0xC0 | (register & 7) << 3 | mask))
