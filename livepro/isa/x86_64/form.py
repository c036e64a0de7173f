"""What holds for every encoding of one iced-x86 `Code` (an opcode with its operand kinds).

iced's tables are the source of all facts; they are read once per `Code` and
kept, so that describing a new encoding costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from iced_x86 import (
    Code,
    CpuidFeature,
    EncodingKind,
    FlowControl,
    Instruction,
    MemorySize,
    Mnemonic,
    OpCodeInfo,
    OpCodeOperandKind,
)

EnumMember = Any
"""A member of one of iced's enumerations: an int, which iced's stubs give a type that they do not export."""

MASK, TILE = "K", "T"
"""Operand classes beside MM, X, Y and Z, the vector registers of 64, 128, 256 and 512 bits."""

_CLASSES = (
    ("XMM", "X"),
    ("YMM", "Y"),
    ("ZMM", "Z"),
    ("MM_", "MM"),
    ("K_", MASK),
    ("KP1", MASK),
    ("TMM", TILE),
)


@dataclass(frozen=True, slots=True, eq=False)  # one object per `Code`: identity is equality
class Form:
    """One `Code`.

    `mnemonic` is iced's, in upper case; `text` the signature as Intel's manual
    prints it; `encoding` LEGACY, VEX, EVEX, XOP, D3NOW or MVEX; `features` the
    names of the CPUID features that it needs; `operands` the names of its
    operand kinds; `classes` the register classes among them (MM, X, Y, Z, K,
    T); `memory` the name of the type of its memory operand (UNKNOWN if
    it has none or one without a type); `flow` the name of its flow control.
    """

    code: int
    mnemonic: str
    text: str
    encoding: str
    features: frozenset[str]
    operands: tuple[str, ...]
    classes: frozenset[str]
    memory: str
    flow: str
    string: bool
    privileged: bool

    @property
    def has_gather(self) -> bool:
        """Whether its memory operand is indexed by a vector."""
        return any(kind.startswith("MEM_VSIB") for kind in self.operands)


@cache
def enum_names(enum: ModuleType) -> dict[EnumMember, str]:
    """Names of the members of one of iced's enumerations, by value."""
    return {value: name for name, value in vars(enum).items() if isinstance(value, int)}


@cache
def form_of(code: EnumMember) -> Form:
    """The facts of iced's `code`."""
    opcode = OpCodeInfo(code)
    sample = Instruction()
    sample.code = code
    kinds = enum_names(OpCodeOperandKind)
    operands = tuple(kinds[kind] for kind in opcode.op_kinds())
    features = enum_names(CpuidFeature)
    return Form(
        code=code,
        mnemonic=enum_names(Mnemonic)[opcode.mnemonic],
        text=opcode.instruction_string,
        encoding=enum_names(EncodingKind)[opcode.encoding],
        features=frozenset(features[feature] for feature in sample.cpuid_features()),
        operands=operands,
        classes=frozenset(_class_of(kind) for kind in operands) - {""},
        memory=enum_names(MemorySize)[opcode.memory_size],
        flow=enum_names(FlowControl)[sample.flow_control],
        string=sample.is_string_instruction,
        privileged=opcode.is_privileged,
    )


def _class_of(kind: str) -> str:
    """Register class of an operand kind, empty for those that are no vector."""
    if kind.startswith("MEM_VSIB"):
        return kind[-1]
    return next((name for prefix, name in _CLASSES if kind.startswith(prefix)), "")


@cache
def decodable_forms() -> tuple[Form, ...]:
    """Every form that the decoder with its default options knows in 64-bit mode.

    Left out: forms for which iced wants a decoder option (abandoned processors,
    and AMD's reading of a 66 prefix before near branches), and `fwait` merged
    with the instruction behind it, which only an assembler writes and which the
    processor executes as two instructions.
    """
    forms = []
    for code in enum_names(Code):
        opcode = OpCodeInfo(code)
        known = opcode.is_instruction and opcode.mode64 and opcode.intel_decoder64
        if known and not opcode.decoder_option and not opcode.fwait:
            forms.append(form_of(code))
    return tuple(forms)
