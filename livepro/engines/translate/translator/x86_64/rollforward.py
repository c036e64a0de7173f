"""Carries out emitted instructions in the tracer, up to the next boundary of the program's own.

A thread that a signal finds within an emitted sequence could be stepped on, at
the price of a stop for each instruction. What the emitter adds is of few
kinds; here is what each does. Those that touch the program's memory, and
whatever is not known, are left to the processor.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Words
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.entries import entries_for
from livepro.engines.translate.translator.x86_64.refilling import REFILLING
from livepro.isa.access import ALL_64

_ORDER = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
)
_CARRY, _PARITY, _ADJUST, _ZERO, _SIGN, _OVERFLOW = 1, 4, 0x10, 0x40, 0x80, 0x800  # SDM vol. 1, 3.4.3
_LOW_FLAGS = 0xD5  # SF, ZF, AF, PF, CF: what lahf and sahf move

_i32 = struct.Struct("<i").unpack_from
_u32 = struct.Struct("<I").unpack_from
_u64 = struct.Struct("<Q").unpack_from

Read = Callable[[int, int], bytes]

_LEA = {  # lea without displacement, or with one of 8 bits: register, what is added
    b"\x48\x8d\x40\x01": ("rax", "", 1),
    b"\x48\x8d\x49\x01": ("rcx", "", 1),
    b"\x48\x8d\x0c\x01": ("rcx", "rax", 0),
}
_NOPS = (b"\x90", b"\x66\x90", b"\x0f\x1f\x00", encode.STOP_IN_NOP)


def roll_forward(registers: Any, words: Words, area: int, read: Read) -> bool:
    """Carry out the emitted instruction at which a thread is; False if that is left to it.

    `registers` are changed, and `words`, the thread's area, whose address `area` is; `read`
    reads memory of the thread's: an address and a size.
    """
    pc = registers.rip
    within = pc - int(words[layout.REFILL // 8])
    if 0 <= within < len(REFILLING.code):
        REFILLING.finish(registers, words, within, read)
        return True
    entries = int(words[layout.RECORDERS[0] // 8])
    if entries:
        routines = entries_for(int(words[layout.ENTRY_CACHE // 8]))
        if 0 <= pc - entries < routines.size:
            return routines.finish(registers, words, pc - entries)
    code = read(pc, 16)
    if len(code) < 16:
        return False
    size = _area(code, registers, words) if code[0] == 0x65 else _registers(code, registers, words, read)
    if size:
        registers.rip = pc + size
        return True
    target = _target(code, registers, words, read)
    if target is None:
        return False
    registers.rip = target & ALL_64
    return True


def _area(code: bytes, registers: Any, words: Words) -> int:
    """An instruction on the thread's area; its size, 0 if it is none."""
    if code[1:4] == b"\xc7\x04\x25":  # mov dword gs:[offset], imm32
        offset, value = _i32(code, 4)[0], _u32(code, 8)[0]
        at, shift = offset // 8, offset % 8 * 8
        words[at] = int(words[at]) & ~(0xFFFF_FFFF << shift) | value << shift
        return 12
    if code[1] & 0xFB != 0x48 or code[3] & 0xC7 != 0x04 or code[4] != 0x25:
        return 0
    register = _ORDER[(code[1] & 4) << 1 | code[3] >> 3 & 7]
    at = _i32(code, 5)[0] // 8
    operation = code[2], code[3]
    if code[2] == 0x89:
        words[at] = getattr(registers, register)
    elif code[2] == 0x8B:
        setattr(registers, register, int(words[at]))
    elif operation == (0xFF, 0x04):  # inc
        old = int(words[at])
        count = words[at] = old + 1 & ALL_64
        overflow = _OVERFLOW if ~old & count & 1 << 63 else 0
        _set_flags(registers, old, 1, count, registers.eflags & _CARRY | overflow)
    elif operation in ((0x81, 0x2C), (0x83, 0x2C)):  # sub
        amount = _i32(code, 9)[0] if code[2] == 0x81 else code[9]
        old = int(words[at])
        left = words[at] = old - amount & ALL_64
        overflow = _OVERFLOW if old & ~left & 1 << 63 else 0
        _set_flags(registers, old, amount, left, (old < amount) | overflow)
        return 13 if code[2] == 0x81 else 10
    else:
        return 0
    return 9


def _set_flags(registers: Any, old: int, operand: int, result: int, others: int) -> None:
    """Set the flags that say what a result is like, and `others`, CF and OF. Where all of them are
    dead, what is behind may save them none the less."""
    flags = others | (_SIGN if result >> 63 else 0) | (_ZERO if result == 0 else 0)
    flags |= (old ^ operand ^ result) & _ADJUST
    flags |= 0 if (result & 0xFF).bit_count() % 2 else _PARITY
    registers.eflags = registers.eflags & ~(_LOW_FLAGS | _OVERFLOW) | flags


def _registers(code: bytes, registers: Any, words: Words, read: Read) -> int:
    """An instruction on registers alone, or a comparison's load; its size, 0 if it is none."""
    for nop in _NOPS:
        if code.startswith(nop):
            return len(nop)
    if code.startswith(b"\x48\x8d\x0d"):  # lea rcx, [rip + disp32]
        registers.rcx = registers.rip + 7 + _i32(code, 3)[0]
        return 7
    lea = _LEA.get(code[:4])
    if lea is not None:
        name, added, constant = lea
        more = getattr(registers, added) if added else 0
        setattr(registers, name, getattr(registers, name) + more + constant & ALL_64)
        return 4
    rax = registers.rax
    first, second = code[0], code[:2]
    if (
        first in (0x48, 0x4D)
        and code[1] == 0x8D
        and code[2] & 0xC0 == 0x80
        and code[2] >> 3 & 7 == code[2] & 7
    ):
        name = _ORDER[(first & 4) << 1 | code[2] & 7]  # lea r64, [r64 + disp32]
        if name in ("rsp", "r12"):
            return 0
        setattr(registers, name, getattr(registers, name) + _i32(code, 3)[0] & ALL_64)
        return 7
    if first in (0x48, 0x4E, 0x4F) and code[1] == 0x8D and code[2] & 0x87 == 4:  # of a branch by a table
        register = code[2] >> 3 & 7
        name = _ORDER[(first & 4) << 1 | register]
        if first != 0x4E and code[2] & 0x40 and code[3] == register << 3 | register and code[4] == 0:
            setattr(registers, name, getattr(registers, name) * 2 & ALL_64)  # lea r64, [r64 + r64]
            return 5
        if not code[2] & 0x40 and code[3] == 0xC5 | register << 3:  # lea r64, [r64 * 8 + disp32]
            setattr(registers, name, getattr(registers, name) * 8 + _i32(code, 4)[0] & ALL_64)
            return 8
    high = first == 0x41
    if code[high] & 0xF8 == 0xB8:  # mov r32, imm32
        setattr(registers, _ORDER[high << 3 | code[high] & 7], _u32(code, 1 + high)[0])
        return 5 + high
    if first in (0x48, 0x49, 0x4C) and code[1] == 0x89 and code[2] & 0xC0 == 0xC0:  # mov r64, r64
        to, of = (first & 1) << 3 | code[2] & 7, (first & 4) << 1 | code[2] >> 3 & 7
        if "rcx" not in (_ORDER[to], _ORDER[of]):
            return 0
        setattr(registers, _ORDER[to], getattr(registers, _ORDER[of]))
        return 3
    if second in (b"\x48\xb8", b"\x48\xb9"):  # mov rax, rcx with imm64
        setattr(registers, "rax" if second[1] == 0xB8 else "rcx", _u64(code, 2)[0])
        return 10
    if second == b"\x48\xa1":
        return _load(registers, read, _u64(code, 2)[0], 8, 10)
    if first == 0xA1:
        return _load(registers, read, _u64(code, 1)[0], 4, 9)
    if second == b"\x66\xa1":  # with the movzx eax, ax behind it
        return _load(registers, read, _u64(code, 2)[0], 2, 13)
    if first == 0xA0:  # with the movzx eax, al behind it
        return _load(registers, read, _u64(code, 1)[0], 1, 12)
    if code.startswith(b"\x0f\xb7\xc8"):  # movzx ecx, ax
        registers.rcx = rax & 0xFFFF
        return 3
    if code.startswith(b"\x0f\xb6\x89"):  # movzx ecx, byte [rcx + table]
        registers.rcx = read(registers.rcx + _u32(code, 3)[0], 1)[0]
        return 7
    if first == 0x9F:  # lahf
        flags = registers.eflags & _LOW_FLAGS | 2
        registers.rax = rax & ~0xFF00 | flags << 8
        return 1
    if code.startswith(b"\x0f\x90\xc0"):  # seto al
        registers.rax = rax & ~0xFF | bool(registers.eflags & _OVERFLOW)
        return 3
    if code.startswith(b"\x04\x7f\x9e"):  # add al, 0x7f; sahf
        flags = rax >> 8 & _LOW_FLAGS | (_OVERFLOW if rax & 0xFF == 1 else 0)
        registers.eflags = registers.eflags & ~(_LOW_FLAGS | _OVERFLOW) | flags
        return 3
    return 0


def _load(registers: Any, read: Read, address: int, count: int, size: int) -> int:
    data = read(address, count)
    if len(data) < count:
        return 0
    registers.rax = int.from_bytes(data, "little")
    return size


def _target(code: bytes, registers: Any, words: Words, read: Read) -> int | None:
    """Where a jump leads; None for all else."""
    pc: int = registers.rip
    if code[0] == 0xE9:
        return pc + 5 + int(_i32(code, 1)[0])
    if code.startswith(b"\x0f\x8f"):  # jg behind an inc that did not overflow
        return pc + 6 + (0 if registers.eflags & (_SIGN | _ZERO) else int(_i32(code, 2)[0]))
    if code.startswith(encode.STOP_IF_NEGATIVE):
        return pc + 2 + (not registers.eflags & _SIGN)
    if code[0] == 0xEB:
        return pc + 2 + code[1]
    if code[0] == 0x78:  # js, forward
        return pc + 2 + (code[1] if registers.eflags & _SIGN else 0)
    if code.startswith(b"\x65\xff\x24\x25"):  # jmp gs:[offset]
        return int(words[_i32(code, 4)[0] // 8])
    high = code[0] == 0x41
    if code[high] == 0xFF and code[high + 1] & 0xF8 == 0xE0:  # jmp r64
        return int(getattr(registers, _ORDER[high << 3 | code[high + 1] & 7]))
    if code[0] == 0xE3:  # jrcxz, forward
        return pc + 2 + (code[1] if registers.rcx == 0 else 0)
    if code.startswith(b"\xff\x24\xcd"):  # jmp [rcx * 8 + table]
        return int(_u64(read(registers.rcx * 8 + _u32(code, 3)[0], 8))[0])
    if code.startswith(b"\xff\x25\x02\x00\x00\x00\x90\x90"):
        return int(_u64(code, 8)[0])
    return None
