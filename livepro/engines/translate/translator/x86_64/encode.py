"""x86-64 encodings that the translator emits (SDM vol. 2). Pure: bytes out.

`gs:[disp]` is the thread's area: a 32-bit displacement without base, in the
SIB form that 64-bit mode needs for an absolute address.
"""

from __future__ import annotations

import struct
from typing import Any

from livepro.engines.inprocess import ASKING_SIZE
from livepro.engines.translate.codecache.stores import store_32
from livepro.isa.access import ALL_64

RAX, RCX, RDX, RSP = 0, 1, 2, 4

INT3 = b"\xcc"
NOTHING = b"\x0f\x1f\x44\x00\x00"  # SDM vol. 2, NOP
NO_PREFIX = b"\x2e"  # a segment override, which direct branches and NOP ignore (SDM vol. 2, 2.1.1)
STOP_IN_NOP = b"\x0f\x1f\x40" + INT3
"""nop dword [rax - 52], whose last byte is a stop."""
JUMP_INTO_NOP = b"\x78\x03"
"""js +3: to the stop in a `STOP_IN_NOP` that follows. Not taken as a rule: a jump around a stop that
is taken again and again would cost each block a place in the branch target buffers."""
STOP_IF_NEGATIVE = b"\x79\x01" + INT3
"""jns +1; int3"""
SYSCALL = b"\x0f\x05"
POP_RAX = b"\x58"
MOVZX_ECX_AX = b"\x0f\xb7\xc8"
LOAD_RCX_BELOW_STACK = b"\x48\x8b\x4c\x24\xf8"  # mov rcx, [rsp - 8]
LEA_RCX_RCX_RAX = b"\x48\x8d\x0c\x01"

_i32 = struct.Struct("<i").pack
_u32 = struct.Struct("<I").pack
_u64 = struct.Struct("<Q").pack


def load_rax(prefixes: bytes, address: int) -> bytes:
    """mov rax, [address] (SDM volume 2, MOV, moffs64), with the prefixes of the program's own operand: one of
    address size (eip) means an address in the lowest 4 GiB."""
    mask = 0xFFFF_FFFF if 0x67 in prefixes else ALL_64
    return prefixes.replace(b"\x67", b"") + b"\x48\xa1" + _u64(address & mask)


def store_area(register: int, offset: int) -> bytes:
    """mov gs:[offset], r64"""
    return bytes((0x65, 0x48 | register >> 3 << 2, 0x89, 0x04 | (register & 7) << 3, 0x25)) + _i32(offset)


def store_area_immediate(offset: int, value: int) -> bytes:
    """mov dword gs:[offset], imm32"""
    return b"\x65\xc7\x04\x25" + _i32(offset) + _u32(value)


def store_area_zero(offset: int) -> bytes:
    """mov qword gs:[offset], 0: the displacement comes before an immediate of 4 bytes."""
    return b"\x65\x48\xc7\x04\x25" + _i32(offset) + _i32(0)


def load_stack(register: int, offset: int) -> bytes:
    """mov r64, [rsp + offset]"""
    return bytes((0x48 | register >> 3 << 2, 0x8B, 0x84 | (register & 7) << 3, 0x24)) + _i32(offset)


def load_area(register: int, offset: int) -> bytes:
    """mov r64, gs:[offset]"""
    return bytes((0x65, 0x48 | register >> 3 << 2, 0x8B, 0x04 | (register & 7) << 3, 0x25)) + _i32(offset)


def increment_area(offset: int) -> bytes:
    """inc qword gs:[offset]: writes OF, SF, ZF, AF, PF; leaves CF."""
    return b"\x65\x48\xff\x04\x25" + _i32(offset)


def subtract_area(offset: int, amount: int) -> bytes:
    """sub qword gs:[offset], amount"""
    if -0x80 <= amount < 0x80:
        return b"\x65\x48\x83\x2c\x25" + _i32(offset) + bytes((amount & 0xFF,))
    return b"\x65\x48\x81\x2c\x25" + _i32(offset) + _i32(amount)


def subtract_rcx(offset: int) -> bytes:
    """sub gs:[offset], rcx"""
    return b"\x65\x48\x29\x0c\x25" + _i32(offset)


def lea_increment(register: int, amount: int) -> bytes:
    """lea r64, [r64 + amount]: adds without touching flags (not for rsp, r12)."""
    high = register >> 3
    modrm = (register & 7) << 3 | register & 7
    if -0x80 <= amount < 0x80:
        return bytes((0x48 | high << 2 | high, 0x8D, 0x40 | modrm, amount & 0xFF))
    return bytes((0x48 | high << 2 | high, 0x8D, 0x80 | modrm)) + _i32(amount)


def move_absolute(register: int, value: int) -> bytes:
    """mov r64, imm64"""
    return bytes((0x48 | register >> 3, 0xB8 | register & 7)) + _u64(value & ALL_64)


def push_at(displacement: int) -> bytes:
    """push qword [rip + displacement] (from the end of the instruction)"""
    return b"\xff\x35" + _i32(displacement)


def push_immediate(value: int) -> bytes:
    """push imm32, sign-extended to 64 bits"""
    return b"\x68" + _i32(value)


def jump(displacement: int) -> bytes:
    """jmp rel32"""
    return b"\xe9" + _i32(displacement)


def jump_indexed(table: int) -> bytes:
    """jmp [rcx * 8 + table]; `table` below 2 GiB"""
    return b"\xff\x24\xcd" + _u32(table)


def jump_area(offset: int) -> bytes:
    """jmp gs:[offset]"""
    return b"\x65\xff\x24\x25" + _i32(offset)


def lea_rcx(displacement: int) -> bytes:
    """lea rcx, [rip + displacement]: from the end of the instruction"""
    return b"\x48\x8d\x0d" + _i32(displacement)


def move_ecx(value: int) -> bytes:
    """mov ecx, imm32"""
    return b"\xb9" + _u32(value)


def jump_far_away(target: int) -> bytes:
    """jmp [rip + 2] and the target behind it: reaches anywhere.

    The target is aligned where the jump is: a program may have set EFLAGS.AC.
    """
    return b"\xff\x25\x02\x00\x00\x00\x90\x90" + _u64(target)


def link(code: Any, at: int, distance: int) -> bool:
    """Let the 32-bit displacement at `code[at]` lead `distance` bytes on from there. False if
    it cannot."""
    displacement = distance - 4
    if -0x8000_0000 <= displacement < 0x8000_0000:
        store_32(code, at, displacement)
        return True
    return False


def branch(condition: int, displacement: int) -> bytes:
    """jcc rel32; `condition` is the low nibble of the opcode"""
    return bytes((0x0F, 0x80 | condition)) + _i32(displacement)


def jump_if_positive(displacement: int) -> bytes:
    """jg rel32: behind an inc, whether that made more than 0."""
    return b"\x0f\x8f" + _i32(displacement)


def move(to: int, register: int) -> bytes:
    """mov r64, r64"""
    return bytes((0x48 | register >> 3 << 2 | to >> 3, 0x89, 0xC0 | (register & 7) << 3 | to & 7))


def jump_if_rcx_zero(displacement: int) -> bytes:
    """jrcxz rel8"""
    return b"\xe3" + struct.pack("b", displacement)


def load_absolute(size: int, address: int) -> bytes:
    """Load `size` bytes (4, 2 or 1) from a 64-bit address into rax, zero-extended."""
    where = _u64(address)
    return {
        4: b"\xa1" + where,
        2: b"\x66\xa1" + where + b"\x0f\xb7\xc0",  # movzx eax, ax
        1: b"\xa0" + where + b"\x0f\xb6\xc0",  # movzx eax, al
    }[size]


_COMPARED = struct.Struct("<2sQ2sQ7s")
_LEA_JRCXZ_INT3 = b"\x48\x8d\x0c\x01\xe3\x01\xcc"  # lea rcx, [rcx + rax]; jrcxz +1; int3


def compare(size: int, address: int, source: int) -> bytes:
    """Stop unless the `size` bytes (8, 4, 2 or 1) at a 64-bit address are `source`; the stop is the last
    byte. Borrows rax and rcx, leaves flags alone."""
    negative = -source & ALL_64
    if size == 8:  # nearly always: mov rcx, -source; mov rax, [address]
        return _COMPARED.pack(b"\x48\xb9", negative, b"\x48\xa1", address, _LEA_JRCXZ_INT3)
    return move_absolute(RCX, negative) + load_absolute(size, address) + _LEA_JRCXZ_INT3


def load_byte_watched(table: int) -> bytes:
    """movzx ecx, byte [rcx + table]; `table` below 2 GiB"""
    return b"\x0f\xb6\x89" + _u32(table)


def _check_size(move: bytes) -> bytes:
    # movzx ecx, ch; lea ecx, [rcx - ASKING_SIZE]; jrcxz +2; jmp +1
    return move + b"\x0f\xb6\xcd\x8d\x49" + bytes((-ASKING_SIZE & 0xFF,)) + b"\xe3\x02\xeb\x01"


CHECK_SIZE = {2: _check_size(b"\x89\xd1"), 3: _check_size(b"\x44\x89\xd1")}
"""By the place of an argument of a system call (2: edx, 3: r10d): pass the byte that follows by,
unless the argument is a size that asks. Borrows rcx, leaves flags alone."""


def adjust_rsp(amount: int) -> bytes:
    """lea rsp, [rsp + amount]"""
    return b"\x48\x8d\xa4\x24" + _i32(amount)
