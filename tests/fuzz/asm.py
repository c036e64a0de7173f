"""Short names for the instructions that the generator writes by hand."""

from __future__ import annotations

from iced_x86 import Code, Instruction, MemoryOperand, Register

from .code import Ins, Raw

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)


def r64(number: int) -> int:
    """The 64-bit register of that encoding number."""
    return int(Register.RAX) + number


def r32(number: int) -> int:
    """Its low 32 bits."""
    return int(Register.EAX) + number


def r16(number: int) -> int:
    """Its low 16 bits."""
    return int(Register.AX) + number


def r8(number: int) -> int:
    """Its low 8 bits (never ah to bh)."""
    return int(Register.AL) + number + (4 if number >= 4 else 0)


def ins(code: int, *operands: int | MemoryOperand) -> Ins:
    """An instruction of up to three operands, as iced's encoder takes them.

    A register is given as iced numbers it, an immediate as ("i", value) would
    be ambiguous with it and so has functions of its own below.
    """
    kinds = "".join("mem" if isinstance(o, MemoryOperand) else "reg" for o in operands)
    make = {
        "": Instruction.create,
        "reg": Instruction.create_reg,
        "mem": Instruction.create_mem,
        "regreg": Instruction.create_reg_reg,
        "regmem": Instruction.create_reg_mem,
        "memreg": Instruction.create_mem_reg,
    }[kinds]
    return Ins(make(code, *operands))


def ins_imm(code: int, operand: int | MemoryOperand, value: int) -> Ins:
    """An instruction with a register or memory operand and an immediate."""
    if isinstance(operand, MemoryOperand):
        return Ins(Instruction.create_mem_i32(code, operand, value))
    return Ins(Instruction.create_reg_i32(code, operand, value))


def at_rsp(displacement: int) -> MemoryOperand:
    """[rsp + displacement]."""
    return MemoryOperand(Register.RSP, displ=displacement, displ_size=1 if -128 <= displacement < 128 else 8)


def at(base: int, displacement: int = 0, index: int = int(Register.NONE), scale: int = 1) -> MemoryOperand:
    """[base + index * scale + displacement] with 64-bit registers of iced's numbering."""
    size = 0 if displacement == 0 else 1 if -128 <= displacement < 128 else 8
    return MemoryOperand(base, index, scale, displacement, size)


def _rip() -> MemoryOperand:
    return MemoryOperand(Register.RIP, displ=0, displ_size=8)


def lea_data(register: int, offset: int) -> Ins:
    """lea r64, [rip + data]"""
    return Ins(Instruction.create_reg_mem(Code.LEA_R64_M, r64(register), _rip()), data=offset)


def lea_label(register: int, label: int, after: int = 0) -> Ins:
    """lea r64, [rip + label]"""
    return Ins(Instruction.create_reg_mem(Code.LEA_R64_M, r64(register), _rip()), label=label, after=after)


def mov_label(register: int, label: int) -> Ins:
    """movabs r64, label"""
    return Ins(Instruction.create_reg_u64(Code.MOV_R64_IMM64, r64(register), 0), label=label, immediate=True)


def rip_data(code: int, offset: int, register: int | None = None, *, store: bool = False) -> Ins:
    """An instruction with one operand [rip + data], and perhaps a register before or behind it."""
    if register is None:
        return Ins(Instruction.create_mem(code, _rip()), data=offset)
    if store:
        return Ins(Instruction.create_mem_reg(code, _rip(), register), data=offset)
    return Ins(Instruction.create_reg_mem(code, register, _rip()), data=offset)


def rip_label(code: int, label: int, register: int | None = None, *, after: int = 0) -> Ins:
    """An instruction with one operand [rip + label + after], and perhaps a register stored to it."""
    if register is None:
        return Ins(Instruction.create_mem(code, _rip()), label=label, after=after)
    return Ins(Instruction.create_mem_reg(code, _rip(), register), label=label, after=after)


def rip_data_imm(code: int, offset: int, value: int) -> Ins:
    """An instruction with operands [rip + data], immediate."""
    return Ins(Instruction.create_mem_i32(code, _rip(), value), data=offset)


def mov_imm(register: int, value: int) -> Ins:
    """mov r32, value (0 to 2**32 - 1)"""
    return Ins(Instruction.create_reg_u32(Code.MOV_R32_IMM32, r32(register), value))


def mov_imm64(register: int, value: int) -> Ins:
    """mov r64, value"""
    return Ins(Instruction.create_reg_u64(Code.MOV_R64_IMM64, r64(register), value))


def mov(to: int, source: int) -> Ins:
    """mov r64, r64"""
    return ins(Code.MOV_R64_RM64, r64(to), r64(source))


def movzx8(to: int, source: int) -> Ins:
    """movzx r32, r8"""
    return ins(Code.MOVZX_R32_RM8, r32(to), r8(source))


def lea(to: int, memory: MemoryOperand) -> Ins:
    """lea r64, memory: moves the stack pointer, for one, and leaves the flags alone."""
    return ins(Code.LEA_R64_M, r64(to), memory)


def and_imm(register: int, value: int) -> Ins:
    """and r32, value (0 to 127)"""
    return Ins(Instruction.create_reg_i32(Code.AND_RM32_IMM8, r32(register), value))


def push_imm(value: int) -> Ins:
    """push imm32"""
    return Ins(Instruction.create_i32(Code.PUSHQ_IMM32, value))


RET = Raw(b"\xc3")
PUSHF = Raw(b"\x9c")
POPF = Raw(b"\x9d")
SYSCALL = Raw(b"\x0f\x05")
