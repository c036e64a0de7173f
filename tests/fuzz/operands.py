"""Random operands for an instruction of the table, all memory inside the sequence's own areas."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from iced_x86 import (
    Code,
    Encoder,
    EncodingKind,
    Instruction,
    InstructionInfoFactory,
    MemoryOperand,
    OpAccess,
    OpCodeOperandKind,
    OpKind,
    Register,
    RegisterExt,
    RoundingControl,
)

from . import asm
from .code import Ins, Item, words
from .table import Form, forms

REACH = 960
"""Displacements from the data area's centre stay within this, so that 64 bytes more are inside it."""

RED_ZONE = 128


@dataclass
class Context:
    """What instructions at some place may use.

    `reserved` are numbers of general registers that must keep their values;
    `frame` bytes above rsp are the sequence's own; `low` says that all
    addresses are below 2**31; `aligned` that accesses must be (EFLAGS.AC);
    `writable` that the code may be written to.
    """

    rng: random.Random
    low: bool
    writable: bool
    anchor: int | None
    reserved: frozenset[int]
    frame: int = 0
    aligned: bool = False
    families: dict[str, int] = field(default_factory=dict)

    def free(self) -> int:
        """A general register that may be overwritten."""
        return self.rng.choice([n for n in range(16) if n not in self.reserved])

    def but(self, **changes: object) -> Context:
        """The same with some fields changed."""
        return Context(**{**self.__dict__, **changes})  # type: ignore[arg-type]


class Unsuitable(Exception):
    """This choice of operands cannot be encoded or is not allowed here."""


INTERESTING = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF)


def number(rng: random.Random, bits: int) -> int:
    """An unsigned number of so many bits, often a special one."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(INTERESTING) & ((1 << bits) - 1)
    if kind == 1:
        return -rng.choice(INTERESTING) & ((1 << bits) - 1)
    if kind == 2:
        return (1 << (bits - 1)) - rng.randrange(3) & ((1 << bits) - 1)
    return rng.getrandbits(bits)


_KIND_NAMES = {
    getattr(OpCodeOperandKind, name): name
    for name in dir(OpCodeOperandKind)
    if isinstance(getattr(OpCodeOperandKind, name), int)
}

_IMMEDIATES = {
    "IMM8": (OpKind.IMMEDIATE8, 8),
    "IMM4_M2Z": (OpKind.IMMEDIATE8, 4),
    "IMM8_CONST_1": (OpKind.IMMEDIATE8, 0),
    "IMM8SEX16": (OpKind.IMMEDIATE8TO16, 8),
    "IMM8SEX32": (OpKind.IMMEDIATE8TO32, 8),
    "IMM8SEX64": (OpKind.IMMEDIATE8TO64, 8),
    "IMM16": (OpKind.IMMEDIATE16, 16),
    "IMM32": (OpKind.IMMEDIATE32, 32),
    "IMM32SEX64": (OpKind.IMMEDIATE32TO64, 32),
    "IMM64": (OpKind.IMMEDIATE64, 64),
}

_ENCODER = Encoder(64)
_FACTS = InstructionInfoFactory()
_WRITES = (OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)


def straight(context: Context, family: str) -> list[Item]:
    """A random instruction of `family`, perhaps after others that prepare its address."""
    found = forms()[family]
    while True:
        form = context.rng.choice(found)
        try:
            return fill(form, context)
        except Unsuitable:
            continue


def fill(form: Form, context: Context) -> list[Item]:
    """`form` with random operands. Raises Unsuitable when the choice made is not possible."""
    rng = context.rng
    out = Instruction()
    out.code = form.code
    before: list[Item] = []
    data: int | None = None
    memory = False
    registers: list[int] = []
    vector_limit = 32 if form.encoding == EncodingKind.EVEX else 16
    for index, kind in enumerate(form.kinds):
        name = _KIND_NAMES[kind]
        if name in _IMMEDIATES:
            op_kind, bits = _IMMEDIATES[name]
            out.set_op_kind(index, op_kind)
            value = number(rng, bits) if bits else 1
            if bits in (8, 32) and op_kind not in (OpKind.IMMEDIATE8, OpKind.IMMEDIATE32):
                value -= (value >> (bits - 1)) << bits
                out.set_immediate_i64(index, value)
            else:
                out.set_immediate_u64(index, value)
        elif name in ("SEG_RDI", "SEG_RBX_AL"):
            register = asm.RDI if name == "SEG_RDI" else asm.RBX
            if register in context.reserved:
                raise Unsuitable
            before.append(asm.lea_data(register, rng.randrange(-REACH, REACH - 256)))
            if name == "SEG_RDI":
                out.set_op_kind(index, OpKind.MEMORY_SEG_RDI)
            else:
                out.set_op_kind(index, OpKind.MEMORY)
                out.memory_base, out.memory_index = Register.RBX, Register.AL
        elif name == "MEM_OFFS":
            out.set_op_kind(index, OpKind.MEMORY)
            out.memory_displ_size = 8
            data = _offset(form, context)
        elif name.startswith("MEM_VSIB"):
            before += _vector_index(out, index, name, form, context)
        elif name == "MEM" or (name.endswith("_OR_MEM") and rng.random() < 0.5):
            memory = True
            prepared, data = _address(out, index, form, context)
            before += prepared
        else:
            register = _register(name, rng, vector_limit)
            out.set_op_kind(index, OpKind.REGISTER)
            out.set_op_register(index, register)
            registers.append(RegisterExt.number(register))
    if form.info.requires_unique_reg_nums or form.info.requires_unique_dest_reg_num or before:
        _check_unique(form, out, registers)
    _decorate(out, form, memory, rng, context)
    _check_writes(out, context)
    try:
        _ENCODER.encode(out, 0 if data is None else 0x1000)
    except ValueError as error:
        raise Unsuitable from error
    finally:
        _ENCODER.take_buffer()
    before += _tame_bit_offset(out, form, memory, context)
    return [*before, Ins(out, data=data)]


@cache
def _fixed(name: str) -> int | None:
    return getattr(Register, name, None) if name in _FIXED else None


_FIXED = frozenset(words("AL AX EAX RAX CL CX DX ES CS SS DS FS GS ST0"))


def _register(name: str, rng: random.Random, vectors: int) -> int:
    """A register for an operand of that kind."""
    fixed = _fixed(name)
    if fixed is not None:
        return fixed
    prefix = name.split("_")[0]
    choose: dict[str, Callable[[], int]] = {
        "R8": lambda: int(Register.AL) + rng.randrange(20),
        "R16": lambda: asm.r16(rng.randrange(16)),
        "R32": lambda: asm.r32(rng.randrange(16)),
        "R64": lambda: asm.r64(rng.randrange(16)),
        "MM": lambda: int(Register.MM0) + rng.randrange(8),
        "XMM": lambda: int(Register.XMM0) + rng.randrange(vectors),
        "YMM": lambda: int(Register.YMM0) + rng.randrange(vectors),
        "ZMM": lambda: int(Register.ZMM0) + rng.randrange(vectors),
        "K": lambda: int(Register.K0) + rng.randrange(8),
        "KP1": lambda: int(Register.K0) + 2 * rng.randrange(4),
        "STI": lambda: int(Register.ST0) + rng.randrange(8),
        "SEG": lambda: rng.choice((Register.ES, Register.CS, Register.SS, Register.DS, Register.FS)),
    }
    if prefix not in choose:
        raise Unsuitable
    return choose[prefix]()


# -- memory


def _needs_alignment(form: Form) -> bool:
    if form.mnemonic in ("MOVUPS", "MOVUPD", "MOVDQU", "LDDQU"):
        return False
    if form.family == "sse" and form.memory_size >= 16:
        return True
    text = form.mnemonic.removeprefix("V")
    return text.startswith(("MOVA", "MOVDQA", "MOVNT", "XCHG", "CMPXCHG", "XADD")) or form.mnemonic == "XCHG"


def _offset(form: Form, context: Context) -> int:
    """Where in the data area an operand of the form may lie."""
    offset = context.rng.randrange(-REACH, REACH)
    if (
        _needs_alignment(form)
        or context.aligned
        or form.info.can_use_lock_prefix
        or context.rng.random() < 0.3
    ):
        offset &= -64
    return offset


def _address(out: Instruction, index: int, form: Form, context: Context) -> tuple[list[Item], int | None]:
    """Give `out` a memory operand; returns what must run before it, and its data offset if absolute."""
    rng = context.rng
    out.set_op_kind(index, OpKind.MEMORY)
    if form.code in (Code.LEA_R16_M, Code.LEA_R32_M, Code.LEA_R64_M) and rng.random() < 0.7:
        _any_address(out, rng)
        return [], None
    size = form.memory_size or 64
    careful = _needs_alignment(form) or context.aligned or form.info.can_use_lock_prefix
    offset = _offset(form, context)
    modes = ["rip", "rip", "prepared"]
    if context.anchor is not None:
        modes += ["anchor", "anchor", "index"]
    if context.low:
        modes += ["absolute", "eip"]
    if not careful:
        modes += ["red", "red"] + ["frame"] * (context.frame >= size)
    mode = rng.choice(modes)
    if mode in ("rip", "eip", "absolute"):
        out.memory_base = {"rip": Register.RIP, "eip": Register.EIP}.get(mode, Register.NONE)
        out.memory_displ_size = 4 if mode == "eip" else 8
        return [], offset
    if mode == "red":
        room = max(RED_ZONE - size, 0)
        _set_address(out, Register.RSP, -size - rng.randrange(room + 1))
        return [], None
    if mode == "frame":
        _set_address(out, Register.RSP, rng.randrange(context.frame - size + 1))
        return [], None
    if mode == "anchor":
        assert context.anchor is not None
        narrow = context.low and rng.random() < 0.3
        _set_address(out, asm.r32(context.anchor) if narrow else asm.r64(context.anchor), offset)
        return [], None
    if mode == "index" and not careful:
        assert context.anchor is not None
        register, scale = context.free(), rng.choice((1, 2, 4))
        base = asm.r64(context.anchor)
        _set_address(out, base, rng.randrange(-REACH, REACH - 255 * scale), asm.r64(register), scale)
        return [asm.movzx8(register, rng.randrange(16))], None
    register = context.free()
    shift = 64 * rng.randrange(-2, 3)
    _set_address(out, asm.r64(register), shift)
    return [asm.lea_data(register, offset - shift if abs(offset - shift) < REACH else offset)], None


def _set_address(
    out: Instruction, base: int, displacement: int, index: int = int(Register.NONE), scale: int = 1
) -> None:
    wide = 4 if RegisterExt.size(base) == 4 else 8
    out.memory_base = base
    out.memory_index = index
    out.memory_index_scale = scale
    out.memory_displacement = displacement & ((1 << (8 * wide)) - 1)
    out.memory_displ_size = 0 if displacement == 0 else 1 if -128 <= displacement < 128 else wide


def _any_address(out: Instruction, rng: random.Random) -> None:
    """Any address at all, for lea."""
    indexed = rng.random() < 0.6
    index = asm.r64(rng.choice([n for n in range(16) if n != asm.RSP])) if indexed else int(Register.NONE)
    displacement = rng.choice((0, rng.randrange(-128, 128), rng.randrange(-(1 << 31), 1 << 31)))
    _set_address(out, asm.r64(rng.randrange(16)), displacement, index, rng.choice((1, 2, 4, 8)))


def _vector_index(out: Instruction, index: int, name: str, form: Form, context: Context) -> list[Item]:
    """A gather's or scatter's operand: its index register is brought into range first."""
    rng = context.rng
    if context.aligned:
        raise Unsuitable
    wide = {"X": Register.XMM0, "Y": Register.YMM0, "Z": Register.ZMM0}[name[-1]]
    evex = form.encoding == EncodingKind.EVEX
    register = int(wide) + rng.randrange(32 if evex else 16)
    base = context.free()
    _set_address(out, asm.r64(base), rng.choice((0, 64, -64, 8)), register, rng.choice((1, 2, 4, 8)))
    out.set_op_kind(index, OpKind.MEMORY)
    shift = Instruction()
    qword = "64" in name
    shape = {"X": ("XMM", 128), "Y": ("YMM", 256), "Z": ("ZMM", 512)}[name[-1]]
    if evex:
        element = ("Q", 64) if qword else ("D", 32)
        text = f"EVEX_VPSRL{element[0]}_{shape[0]}_K1Z_{shape[0]}M{shape[1]}B{element[1]}_IMM8"
    else:
        text = f"VEX_VPSRL{'Q' if qword else 'D'}_{shape[0]}_{shape[0]}_IMM8"
    shift.code = getattr(Code, text)
    for operand in (0, 1):
        shift.set_op_kind(operand, OpKind.REGISTER)
        shift.set_op_register(operand, register)
    shift.set_op_kind(2, OpKind.IMMEDIATE8)
    shift.immediate8 = 57 if qword else 25  # leaves 0 to 127
    return [asm.lea_data(base, rng.randrange(-REACH + 64, -128)), Ins(shift)]


def _tame_bit_offset(out: Instruction, form: Form, memory: bool, context: Context) -> list[Item]:
    """bt and its kin address memory by a bit offset in a register: keep it small."""
    if not memory or form.mnemonic not in ("BT", "BTS", "BTR", "BTC") or "IMM8" in form.name:
        return []
    register = RegisterExt.number(out.op1_register)
    used = (out.memory_base, out.memory_index)
    if register in context.reserved or asm.r64(register) in used:
        raise Unsuitable
    if form.name.startswith("BT") and out.memory_base == Register.RSP:
        raise Unsuitable
    return [asm.and_imm(register, 63)]


# -- what else


def _check_unique(form: Form, out: Instruction, registers: list[int]) -> None:
    numbers = list(registers)
    vector = out.memory_index
    if RegisterExt.is_vector_register(vector):
        numbers.append(RegisterExt.number(vector))
    if form.info.requires_unique_reg_nums and len(set(numbers)) < len(numbers):
        raise Unsuitable
    if form.info.requires_unique_dest_reg_num and numbers[0] in numbers[1:]:
        raise Unsuitable


def _decorate(out: Instruction, form: Form, memory: bool, rng: random.Random, context: Context) -> None:
    """Masks, zeroing, broadcast, rounding; lock."""
    info = form.info
    if info.can_use_op_mask_register and (info.require_op_mask_register or rng.random() < 0.5):
        out.op_mask = int(Register.K1) + rng.randrange(7)
        if info.can_use_zeroing_masking and out.op0_kind == OpKind.REGISTER and rng.random() < 0.5:
            out.zeroing_masking = True
    if memory and info.can_broadcast and rng.random() < 0.5:
        out.is_broadcast = True
    if not memory and info.can_use_rounding_control and rng.random() < 0.3:
        out.rounding_control = int(RoundingControl.ROUND_TO_NEAREST) + rng.randrange(4)
    elif not memory and info.can_suppress_all_exceptions and rng.random() < 0.3:
        out.suppress_all_exceptions = True
    if info.can_use_lock_prefix and out.op0_kind == OpKind.MEMORY and rng.random() < 0.5:
        out.has_lock_prefix = True


def _check_writes(out: Instruction, context: Context) -> None:
    """No reserved register is written."""
    for used in _FACTS.info(out).used_registers():
        if used.access in _WRITES:
            full = RegisterExt.full_register(used.register)
            if RegisterExt.is_gpr64(full) and RegisterExt.number(full) in context.reserved:
                raise Unsuitable


__all__ = ["REACH", "Context", "MemoryOperand", "Unsuitable", "fill", "number", "straight"]
