"""Encodings of instructions that filters are made of (SDM vol. 2)."""

from __future__ import annotations

import struct

from livepro.engines.translate import layout
from livepro.engines.translate.translator.x86_64.events.addressing import Place, lea

_i32 = struct.Struct("<i").pack

IF_DIFFERENT = b"\x0f\x85\0\0\0\0"  # jne
IS_FULL = b"\x65\x80\x3c\x25" + _i32(layout.RECORD + 2) + b"\0"
"""cmp byte gs:[offset], 0: whether a thread's chunk is full (`layout.RECORDS_END`)."""
IF_ABOVE = b"\x0f\x87\0\0\0\0"  # ja
IF_ZERO = b"\x0f\x84\0\0\0\0"  # je


def compare_area(register: int, offset: int) -> bytes:
    """cmp r64, gs:[offset]"""
    return bytes((0x65, 0x48 | register >> 3 << 2, 0x3B, 0x04 | (register & 7) << 3, 0x25)) + _i32(offset)


def compare_page(offset: int, page: int) -> bytes:
    """cmp dword gs:[offset], imm32"""
    return b"\x65\x81\x3c\x25" + _i32(offset) + struct.pack("<I", page & 0xFFFFFFFF)


def compare_byte(register: int, value: int) -> bytes:
    """cmp r64, imm32"""
    if value < 0x80:
        return bytes((0x48 | register >> 3, 0x83, 0xF8 | register & 7, value))
    return bytes((0x48 | register >> 3, 0x81, 0xF8 | register & 7)) + _i32(value)


def and_32(register: int, mask: int) -> bytes:
    """and r32, imm32"""
    prefix = b"\x41" if register >> 3 else b""
    return prefix + bytes((0x81, 0xE0 | register & 7)) + _i32(mask)


def lowest(register: int, lanes: int) -> bytes:
    """Let a register have no others than its lowest bits: and r32, ones"""
    return and_32(register, (1 << lanes) - 1 if lanes < 32 else -1) if lanes < 64 else b""


def runs_of(register: int, lanes: int, other: int) -> bytes:
    """Let the other register be how many runs of ones there are among the lowest bits of one: and r64, ones;
    lea; not; and; popcnt."""
    code = lowest(register, lanes)
    code += lea(other, register, register, 1, 0) + bytes((0x48 | other >> 3, 0xF7, 0xD0 | other & 7))
    code += _two(0x21, register, other)
    return code + b"\xf3" + bytes((0x48 | other >> 3 << 2 | other >> 3, 0x0F, 0xB8, 0xC0 | (other & 7) * 9))


def first_run(register: int, at: int) -> bytes:
    """Of the ones in a register, which are some, let another one be where the first run of them begins, and
    the first one how many there are in it: tzcnt; shrx; not; tzcnt."""
    code = _scan(True, 0xBC, at, register)
    high = 0x80 * (register < 8) | 0x40 | 0x20 * (register < 8) | 2
    code += bytes((0xC4, high, 0x83 | (~at & 15) << 3, 0xF7, 0xC0 | (register & 7) * 9))
    code += bytes((0x48 | register >> 3, 0xF7, 0xD0 | register & 7))
    return code + _scan(True, 0xBC, register, register)


def last_one(register: int) -> bytes:
    """Let a register be where the last of its ones is: bsr"""
    return _scan(False, 0xBD, register, register)


def _scan(counts: bool, operation: int, to: int, register: int) -> bytes:
    return (
        b"\xf3" * counts
        + bytes((0x48 | to >> 3 << 2 | register >> 3, 0x0F, operation))
        + bytes((0xC0 | (to & 7) << 3 | register & 7,))
    )


def test(register: int) -> bytes:
    """test r64, r64"""
    return _two(0x85, register, register)


def or_immediate(register: int, value: int) -> bytes:
    """or r64, imm32"""
    return bytes((0x48 | register >> 3, 0x81, 0xC8 | register & 7)) + _i32(value)


def shift_left(register: int, bits: int) -> bytes:
    """shl r64, imm8"""
    return bytes((0x48 | register >> 3, 0xC1, 0xE0 | register & 7, bits))


def or_registers(to: int, register: int) -> bytes:
    """or r64, r64"""
    return _two(0x09, register, to)


def _two(operation: int, register: int, to: int) -> bytes:
    return bytes((0x48 | register >> 3 << 2 | to >> 3, operation, 0xC0 | (register & 7) << 3 | to & 7))


def load_first(register: int) -> bytes:
    """mov r64, gs:[r64 + first line of data] (not rsp, r12)"""
    high, low = register >> 3, register & 7
    return bytes((0x65, 0x48 | high << 2 | high, 0x8B, 0x80 | low << 3 | low)) + _i32(layout.DATA_LINES)


def add_place(out: bytearray, place: Place, register: int) -> None:
    """Add an address of a base, or of a scaled register, or both: lea r64, [r64 + ...]"""
    if place.scaled >= 0:
        displacement = place.displacement if place.base < 0 else 0
        out += lea(register, register, place.scaled, place.scale, displacement)
    if place.base >= 0:
        out += lea(register, place.base, register, 1, place.displacement)


def store_at(pointer: int, displacement: int, value: int) -> bytes:
    """mov dword gs:[pointer + displacement], imm32 (pointer: of the first eight, not rsp)"""
    code = bytes((0x65, 0xC7, 0x40 | pointer, displacement))
    return code + struct.pack("<I", value & 0xFFFFFFFF)


def store_halfword_at(register: int, pointer: int, displacement: int) -> bytes:
    """mov word gs:[pointer + displacement], r16 (of the first eight)"""
    return bytes((0x65, 0x66, 0x89, 0x40 | register << 3 | pointer, displacement))


def load_halfword(register: int, offset: int) -> bytes:
    """movzx r32, word gs:[offset]"""
    rex = 0x40 | register >> 3 << 2
    return bytes((0x65, rex, 0x0F, 0xB7, 0x04 | (register & 7) << 3, 0x25)) + _i32(offset)


def call_area(offset: int) -> bytes:
    """call gs:[offset]"""
    return b"\x65\xff\x14\x25" + _i32(offset)
