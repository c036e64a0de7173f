"""Carrying out x86-64 control-flow instructions in the tracer.

A terminator is decoded once into a closure over its static facts; the closure
works on the register set as a vector of 64-bit words. What a closure leaves to
the processor (it returns False): a memory operand that cannot be accessed, a
misaligned one under EFLAGS.AC (SDM vol. 3, 6.15, Interrupt 17), and a target
that is no user address, for which the instruction itself faults (SDM vol. 2,
JMP, CALL, RET: #GP if the target is not canonical).

Shadow stacks (CET) are not kept: `syscalls.guards_returns` tells who enables them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iced_x86 import Code, ConditionCode, Decoder, Instruction, OpKind, Register

from livepro.isa.base import Carry, Words
from livepro.isa.x86_64.registers import Registers

Operand = Callable[["memoryview[int]", Words], int]
"""Where an indirect branch leads, -1 if that cannot be read."""

_INDEX: Final = {field[0]: getattr(Registers, field[0]).offset // 8 for field in Registers._fields_}
_RIP, _RSP, _RCX, _EFLAGS = (_INDEX[name] for name in ("rip", "rsp", "rcx", "eflags"))
_GENERAL: Final = {
    getattr(Register, name.upper()): _INDEX[name]
    for name in ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)))
}
_SEGMENT_BASES: Final = {Register.FS: _INDEX["fs_base"], Register.GS: _INDEX["gs_base"]}

_MASK: Final = (1 << 64) - 1
_USER_END: Final = 1 << 47
"""Targets from here on are left to the processor: not canonical, the kernel's, or
(under 5-level paging) so rare that nothing is lost."""

# EFLAGS bits: SDM vol. 1, figure 3-8.
_CF, _PF, _ZF, _SF, _OF, _AC = 1 << 0, 1 << 2, 1 << 6, 1 << 7, 1 << 11, 1 << 18
_TESTED: Final = _CF | _PF | _ZF | _SF | _OF

# Jcc's conditions (SDM vol. 1, appendix B), each with its negation beside it.
_CONDITIONS: Final[dict[int, Callable[[int], bool]]] = {
    ConditionCode.O: lambda f: bool(f & _OF),
    ConditionCode.NO: lambda f: not f & _OF,
    ConditionCode.B: lambda f: bool(f & _CF),
    ConditionCode.AE: lambda f: not f & _CF,
    ConditionCode.E: lambda f: bool(f & _ZF),
    ConditionCode.NE: lambda f: not f & _ZF,
    ConditionCode.BE: lambda f: bool(f & (_CF | _ZF)),
    ConditionCode.A: lambda f: not f & (_CF | _ZF),
    ConditionCode.S: lambda f: bool(f & _SF),
    ConditionCode.NS: lambda f: not f & _SF,
    ConditionCode.P: lambda f: bool(f & _PF),
    ConditionCode.NP: lambda f: not f & _PF,
    ConditionCode.L: lambda f: bool(f & _SF) != bool(f & _OF),
    ConditionCode.GE: lambda f: bool(f & _SF) == bool(f & _OF),
    ConditionCode.LE: lambda f: bool(f & _ZF) or bool(f & _SF) != bool(f & _OF),
    ConditionCode.G: lambda f: not f & _ZF and bool(f & _SF) == bool(f & _OF),
}
_TAKEN: Final = {
    condition: bytes(holds(flags) for flags in range(_TESTED + 1)) for condition, holds in _CONDITIONS.items()
}
"""For each condition, whether it holds, by the flags tested."""

_NARROW_OPERAND: Final = 0x66
_REX: Final = range(0x40, 0x50)
_PREFIXES: Final = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3))

_DIRECT_JUMPS: Final = frozenset((Code.JMP_REL8_64, Code.JMP_REL32_64))
_COUNT_TESTS: Final = {Code.JRCXZ_REL8_64: _MASK, Code.JECXZ_REL8_64: 0xFFFF_FFFF}
_LOOPS: Final = {  # mask of the count register, ZF needed, flags that matter
    Code.LOOP_REL8_64_RCX: (_MASK, 0, 0),
    Code.LOOP_REL8_64_ECX: (0xFFFF_FFFF, 0, 0),
    Code.LOOPE_REL8_64_RCX: (_MASK, _ZF, _ZF),
    Code.LOOPE_REL8_64_ECX: (0xFFFF_FFFF, _ZF, _ZF),
    Code.LOOPNE_REL8_64_RCX: (_MASK, 0, _ZF),
    Code.LOOPNE_REL8_64_ECX: (0xFFFF_FFFF, 0, _ZF),
}


def terminator(code: bytes, address: int) -> Carry | None:
    """What carries out the instruction `code` at `address`; None where the processor must:
    anything but near jumps, calls and returns with 64-bit operands."""
    instruction = Decoder(64, code, ip=address).decode()
    if _ambiguous(code):
        return None
    kind = instruction.code
    if kind in _DIRECT_JUMPS:
        return _jump(instruction.near_branch_target)
    if instruction.condition_code in _TAKEN and instruction.is_jcc_short_or_near:
        return _branch(instruction)
    if kind == Code.CALL_REL32_64:
        return _call(instruction.near_branch_target, instruction.next_ip)
    if kind == Code.RETNQ:
        return _return(8)
    if kind == Code.RETNQ_IMM16:
        return _return(8 + instruction.immediate16)
    if kind == Code.JMP_RM64:
        operand = _operand(instruction)
        return _indirect_jump(operand) if operand else None
    if kind == Code.CALL_RM64:
        operand = _operand(instruction)
        return _indirect_call(operand, instruction.next_ip) if operand else None
    if kind in _LOOPS:
        return _loop(instruction)
    if kind in _COUNT_TESTS:
        return _count_test(instruction)
    return None


def _ambiguous(code: bytes) -> bool:
    """Whether an operand-size prefix counts: processors disagree about what it does to a
    near branch (SDM vol. 2, JMP: ignored; AMD's manual, vol. 3: 16-bit operand). REX.W, which
    must come last, overrides it."""
    narrow = False
    for byte in code:
        if byte in _REX:
            return narrow and not byte & 8
        if byte not in _PREFIXES:
            break
        narrow = narrow or byte == _NARROW_OPERAND
    return narrow


def _jump(target: int) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        registers[_RIP] = target
        return True

    return carry if target < _USER_END else _refuse


def _refuse(registers: memoryview[int], memory: Words) -> bool:
    return False


def _branch(instruction: Instruction) -> Carry:
    taken = _TAKEN[instruction.condition_code]
    target, behind = instruction.near_branch_target, instruction.next_ip

    def carry(registers: memoryview[int], memory: Words) -> bool:
        registers[_RIP] = target if taken[registers[_EFLAGS] & _TESTED] else behind
        return True

    return carry if target < _USER_END else _refuse


def _loop(instruction: Instruction) -> Carry:
    mask, wanted, tested = _LOOPS[instruction.code]
    target, behind = instruction.near_branch_target, instruction.next_ip

    def carry(registers: memoryview[int], memory: Words) -> bool:
        # With a 32-bit address size the count is ecx, and writing it clears the upper half.
        count = registers[_RCX] = (registers[_RCX] - 1) & mask
        registers[_RIP] = target if count and registers[_EFLAGS] & tested == wanted else behind
        return True

    return carry if target < _USER_END else _refuse


def _count_test(instruction: Instruction) -> Carry:
    mask = _COUNT_TESTS[instruction.code]
    target, behind = instruction.near_branch_target, instruction.next_ip

    def carry(registers: memoryview[int], memory: Words) -> bool:
        registers[_RIP] = behind if registers[_RCX] & mask else target
        return True

    return carry if target < _USER_END else _refuse


def _push(registers: memoryview[int], memory: Words, value: int) -> bool:
    place = (registers[_RSP] - 8) & _MASK
    if (place & 7 and registers[_EFLAGS] & _AC) or not memory.write(place, value):
        return False
    registers[_RSP] = place
    return True


def _call(target: int, behind: int) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        if not _push(registers, memory, behind):
            return False
        registers[_RIP] = target
        return True

    return carry if target < _USER_END else _refuse


def _return(dropped: int) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        stack = registers[_RSP]
        target = memory.read(stack)
        if not 0 <= target < _USER_END or (stack & 7 and registers[_EFLAGS] & _AC):
            return False
        registers[_RSP] = (stack + dropped) & _MASK
        registers[_RIP] = target
        return True

    return carry


def _indirect_jump(operand: Operand) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        target = operand(registers, memory)
        if not 0 <= target < _USER_END:
            return False
        registers[_RIP] = target
        return True

    return carry


def _indirect_call(operand: Operand, behind: int) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        # The operand is read before the push, also when it is relative to rsp.
        target = operand(registers, memory)
        if not 0 <= target < _USER_END or not _push(registers, memory, behind):
            return False
        registers[_RIP] = target
        return True

    return carry


def _operand(instruction: Instruction) -> Operand | None:
    """The reader of an indirect branch's register or memory operand."""
    if instruction.op0_kind == OpKind.REGISTER:
        register = _GENERAL[instruction.op0_register]
        return lambda registers, memory: registers[register]
    if instruction.is_ip_rel_memory_operand:
        base, displacement = None, instruction.ip_rel_memory_address
    elif instruction.memory_base == Register.NONE:
        base, displacement = None, instruction.memory_displacement
    elif instruction.memory_base in _GENERAL:
        base, displacement = _GENERAL[instruction.memory_base], instruction.memory_displacement
    else:
        return None  # 32-bit address size
    scaled = instruction.memory_index
    if scaled not in _GENERAL and scaled != Register.NONE:
        return None
    index, scale = _GENERAL.get(scaled), instruction.memory_index_scale
    segment = _SEGMENT_BASES.get(instruction.memory_segment)

    def read(registers: memoryview[int], memory: Words) -> int:
        address = displacement
        if base is not None:
            address += registers[base]
        if index is not None:
            address += registers[index] * scale
        if segment is not None:
            address += registers[segment]
        address &= _MASK
        if address & 7 and registers[_EFLAGS] & _AC:
            return -1
        return memory.read(address)

    return read
