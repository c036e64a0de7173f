"""Register operands of x86-64 instructions, by iced-x86's tables.

iced reports what a write does to the whole register (`mov eax, ecx` writes RAX, a VEX instruction ZMM0);
here a register has the name that the operand has.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from iced_x86 import (
    Decoder,
    Instruction,
    InstructionInfoFactory,
    MemorySizeExt,
    Mnemonic,
    OpAccess,
    OpKind,
    RegisterExt,
)
from iced_x86 import Register as Number

from livepro.isa.operands import Operands, Register, RegisterKind

_READS = frozenset((OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))
_WRITES = frozenset((OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))

_HALVES = frozenset(
    getattr(Mnemonic, name)
    for name in (
        *("CDQ", "CWDE", "CPUID", "RDTSC", "RDTSCP", "RDPMC", "RDMSR", "XGETBV", "RDPKRU", "CMPXCHG8B"),
        *("PCMPESTRI", "PCMPISTRI", "VPCMPESTRI", "VPCMPISTRI"),
    )
)
"""What writes 32 bits of registers that are no operands, whatever its operands are (SDM vol. 2)."""

_BY_SIZE = frozenset(
    (Mnemonic.MUL, Mnemonic.IMUL, Mnemonic.DIV, Mnemonic.IDIV, Mnemonic.CMPXCHG, Mnemonic.MULX)
)
"""What writes such registers as wide as its first operand."""

_NOTHING = frozenset((Mnemonic.NOP, Mnemonic.RESERVEDNOP))
"""What reads none of its operands (SDM vol. 2, NOP)."""

_INFO = InstructionInfoFactory()


@cache
def _names() -> dict[int, str]:
    return {number: name for name, number in vars(Number).items() if isinstance(number, int)}


@cache
def register(number: Any) -> Register:
    """One of iced's registers."""
    whole = RegisterExt.full_register(number)
    if RegisterExt.is_gpr(number):
        kind = RegisterKind.GENERAL
    elif RegisterExt.is_xmm(number):
        kind = RegisterKind.VECTOR
    elif RegisterExt.is_vector_register(number):
        kind = RegisterKind.WIDE
    elif RegisterExt.is_k(number):
        kind = RegisterKind.MASK
    elif RegisterExt.is_mm(number):
        kind = RegisterKind.MMX
    elif RegisterExt.is_st(number):
        kind = RegisterKind.X87
    else:
        kind = RegisterKind.OTHER
    return Register(_names()[number], _names()[whole], kind)


def operands(code: bytes) -> Operands:
    """See `livepro.isa.base.Isa`."""
    return operands_of(Decoder(64, code).decode())


def operands_of(instruction: Instruction) -> Operands:
    """The same for a decoded instruction."""
    if instruction.is_invalid:
        return Operands((), (), 0)
    info = _INFO.info(instruction)
    whole = RegisterExt.full_register
    reads: dict[int, None] = {}
    writes: dict[int, None] = {}
    read_wholes, written_wholes = set(), set()
    explicit = 0
    for n in range(instruction.op_count):
        if instruction.op_kind(n) != OpKind.REGISTER:
            continue
        explicit += 1
        number, access = instruction.op_register(n), info.op_access(n)
        # iced has no access for the sources of `xor eax, eax`.
        if access in _READS or (access == OpAccess.NONE and instruction.mnemonic not in _NOTHING):
            reads[number] = None
            read_wholes.add(whole(number))
        if access in _WRITES:
            writes[number] = None
            written_wholes.add(whole(number))
    addressing = {instruction.memory_base, instruction.memory_index}
    implicit = set()
    for used in info.used_registers():
        number, access = used.register, used.access
        if register(number).kind is RegisterKind.OTHER:
            continue
        if access in _READS:
            if number in addressing:
                reads[number] = None
            elif whole(number) not in read_wholes:
                reads[number] = None
                implicit.add(whole(number))
        if access in _WRITES and whole(number) not in written_wholes:
            writes[_narrowed(instruction, number)] = None
            if whole(number) not in read_wholes:
                implicit.add(whole(number))
    flags = bool(instruction.rflags_read or instruction.rflags_modified)
    return Operands(
        tuple(map(register, reads)), tuple(map(register, writes)), explicit + len(implicit) + flags
    )


def _narrowed(instruction: Instruction, number: Any) -> int:
    """The part of a register that an instruction names when it writes it unasked."""
    if not RegisterExt.is_gpr64(number):
        return int(number)
    half = instruction.mnemonic in _HALVES
    if instruction.mnemonic in _BY_SIZE:
        if instruction.op0_kind == OpKind.REGISTER:
            half = RegisterExt.is_gpr32(instruction.op0_register)
        else:
            half = MemorySizeExt.size(instruction.memory_size) == 4
    return int(number - Number.RAX + Number.EAX) if half else int(number)
