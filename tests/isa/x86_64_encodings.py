"""One encoding of each x86-64 instruction form, for tests that go through all of them.

iced-x86's encoder writes them from operands of the kinds that its tables list,
so a form that a new version of iced brings is tested without being named here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from iced_x86 import Decoder, Encoder, Instruction, OpKind, Register

from livepro.isa.x86_64.form import Form, decodable_forms

_ADDRESS = 0x1000

_REGISTERS = {
    "R8": (Register.CL, Register.DL, Register.BL),
    "R16": (Register.CX, Register.DX, Register.BX),
    "R32": (Register.ECX, Register.EDX, Register.EBX),
    "R64": (Register.RCX, Register.RDX, Register.RBX),
    "MM": (Register.MM1, Register.MM2, Register.MM3),
    "XMM": (Register.XMM1, Register.XMM2, Register.XMM3, Register.XMM4, Register.XMM5),
    "YMM": (Register.YMM1, Register.YMM2, Register.YMM3, Register.YMM4, Register.YMM5),
    "ZMM": (Register.ZMM1, Register.ZMM2, Register.ZMM3, Register.ZMM4),
    "XMMP3": (Register.XMM4,) * 3,
    "ZMMP3": (Register.ZMM4,) * 3,
    "TMM": (Register.TMM1, Register.TMM2, Register.TMM3),
    "K": (Register.K1, Register.K2, Register.K3),
    "KP1": (Register.K2,) * 2,
    "BND": (Register.BND1, Register.BND2),
    "CR": (Register.CR0,) * 2,
    "DR": (Register.DR0,) * 2,
    "SEG": (Register.ES,) * 2,
    "ST0": (Register.ST0,) * 2,
    "STI": (Register.ST1,) * 2,
    "AL": (Register.AL,) * 2,
    "CL": (Register.CL,) * 3,
    "AX": (Register.AX,) * 2,
    "DX": (Register.DX,) * 2,
    "EAX": (Register.EAX,) * 2,
    "RAX": (Register.RAX,) * 2,
    "ES": (Register.ES,),
    "CS": (Register.CS,),
    "SS": (Register.SS,),
    "DS": (Register.DS,),
    "FS": (Register.FS,),
    "GS": (Register.GS,),
}

_IMMEDIATES = {
    "IMM8": OpKind.IMMEDIATE8,
    "IMM8_CONST_1": OpKind.IMMEDIATE8,
    "IMM4_M2Z": OpKind.IMMEDIATE8,
    "IMM16": OpKind.IMMEDIATE16,
    "IMM32": OpKind.IMMEDIATE32,
    "IMM64": OpKind.IMMEDIATE64,
    "IMM8SEX16": OpKind.IMMEDIATE8TO16,
    "IMM8SEX32": OpKind.IMMEDIATE8TO32,
    "IMM8SEX64": OpKind.IMMEDIATE8TO64,
    "IMM32SEX64": OpKind.IMMEDIATE32TO64,
}

_IMPLIED = {
    "ES_RDI": OpKind.MEMORY_ESRDI,
    "SEG_RDI": OpKind.MEMORY_SEG_RDI,
    "SEG_RSI": OpKind.MEMORY_SEG_RSI,
}


def _register(kind: str, position: int) -> Any:
    name = kind.partition("_")[0]
    choice = _REGISTERS[name]
    return choice[min(position, len(choice) - 1)]


def _place_memory(instruction: Instruction, form: Form, kind: str) -> None:
    # movdir64b and its kind have an address as wide as their register operand.
    instruction.memory_base = Register.EAX if "R32_REG_MEM" in form.operands else Register.RAX
    instruction.memory_index_scale = 1
    if kind.startswith("MEM_VSIB"):
        instruction.memory_index = {"X": Register.XMM6, "Y": Register.YMM6, "Z": Register.ZMM6}[kind[-1]]
    elif kind == "MEM_OFFS":
        instruction.memory_base = Register.NONE
        instruction.memory_displ_size = 8
        instruction.memory_displacement = 0x1122334455
    elif kind == "SEG_RBX_AL":
        instruction.memory_base, instruction.memory_index = Register.RBX, Register.AL
    elif kind in ("SIBMEM", "MEM_MIB"):
        instruction.memory_index = Register.RSI


def _build(form: Form, in_memory: bool, masked: bool) -> Instruction:
    instruction = Instruction()
    instruction.code = form.code
    for position, kind in enumerate(form.operands):
        if kind in _IMMEDIATES:
            second = kind == "IMM8" and "IMM" in form.operands[position - 1] and position > 0
            instruction.set_op_kind(position, OpKind.IMMEDIATE8_2ND if second else _IMMEDIATES[kind])
            instruction.set_immediate_i32(position, 1)
        elif kind in _IMPLIED:
            instruction.set_op_kind(position, _IMPLIED[kind])
        elif kind.startswith(("BR", "XBEGIN")):
            instruction.set_op_kind(position, OpKind.NEAR_BRANCH64)
            instruction.near_branch64 = _ADDRESS
        elif kind.startswith(("MEM", "SIBMEM", "SEG_RBX")) or ("_MEM" in kind and in_memory):
            instruction.set_op_kind(position, OpKind.MEMORY)
            _place_memory(instruction, form, kind)
        else:
            instruction.set_op_kind(position, OpKind.REGISTER)
            instruction.set_op_register(position, _register(kind, position))
    if masked or (form.encoding == "EVEX" and form.has_gather):
        instruction.op_mask = Register.K1
    return instruction


def _encode(form: Form, in_memory: bool, masked: bool) -> bytes | None:
    """The bytes, None if the form has no such encoding."""
    encoder = Encoder(64)
    try:
        encoder.encode(_build(form, in_memory, masked), _ADDRESS)
    except ValueError:
        return None
    code: bytes = encoder.take_buffer()
    return code if Decoder(64, code, ip=_ADDRESS).decode().code == form.code else None


@cache
def encodings() -> tuple[tuple[Form, bytes], ...]:
    """Encodings of every form that the decoder knows: with its operand in a
    register, in memory, and under mask k1, as far as it has such encodings."""
    found = {}
    for form in decodable_forms():
        for in_memory in (False, True):
            for masked in (False, True) if form.encoding == "EVEX" else (False,):
                code = _encode(form, in_memory, masked)
                if code is not None:
                    found[code] = form
    return tuple((form, code) for code, form in found.items())
