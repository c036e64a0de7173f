"""What one machine instruction is: static facts, independent of its address."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple


class Flow(IntEnum):
    """How an instruction passes control on."""

    NEXT = 0  # to the instruction that follows
    JUMP = 1  # direct, always taken
    BRANCH = 2  # direct, conditional (jcc, loop, jrcxz, cbz, tbz ...)
    CALL = 3  # direct call
    INDIRECT_JUMP = 4
    INDIRECT_CALL = 5
    RETURN = 6
    SYSCALL = 7  # enters the kernel and goes on behind it; does not end a block
    TRAP = 8  # int3, int n, ud2, hlt, brk, iret, xbegin ...: leaves the straight line in some rare way
    INVALID = 9  # bytes that the decoder does not know

    @property
    def ends_block(self) -> bool:
        """Whether a basic block ends behind such an instruction."""
        return self not in (Flow.NEXT, Flow.SYSCALL)


class SimdType(StrEnum):
    """What a SIMD instruction does with its elements."""

    LOAD = "LOAD"
    STORE = "STORE"
    DATA_TRANSFER = "DATA_TRANSFER"
    CONVERSION = "CONVERSION"
    ARITHMETIC = "ARITHMETIC"
    COMPARISON = "COMPARISON"
    LOGICAL = "LOGICAL"
    EXTRACT = "EXTRACT"
    INSERT = "INSERT"
    SHUFFLE = "SHUFFLE"
    SHIFT = "SHIFT"
    PACK = "PACK"
    UNPACK = "UNPACK"
    STATE_MANAGEMENT = "STATE_MANAGEMENT"


class SimdFacts(NamedTuple):
    """SIMD facts of one instruction.

    `set` is the instruction set that introduced it, as users name it (SSE2f,
    SSE2i, AVX, AVX512BW, NEON, SVE ...). `width` is the number of bits of the
    widest vector operand; for a scalar instruction (`scalar` true) the number
    of bits of its element. `element` is the element type: f16, bf16, f32, f64,
    i8, u8, i16, u16, i32, u32, i64, u64, i128, or empty where the instruction
    has none (logical operations on whole registers, state management).
    `masked` tells whether a mask or predicate operand other than "all" is
    encoded. `extension` names the encoding family (SSE2, AVX, AVX512EVEX,
    ASIMD ...).
    """

    set: str
    type: SimdType
    width: int
    scalar: bool
    element: str
    masked: bool
    extension: str
    description: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """Facts about one encoding, the same wherever it stands.

    `opcode` is the canonical upper-case operation name (ADD, JZ, VADDPS),
    `category` the group that instruction-type specifications name (BINARY,
    COND_BR, DATAXFER, SSE ...), `itypes` the default instruction-type groups it
    belongs to, in output order, at least one. `form` is a readable signature
    with operand kinds, e.g. ``VADDPS zmm1 {k1}{z}, zmm2, zmm3/m512/m32bcst{er}``.
    `register_move` says that it copies one general, segment or control register
    to another (`mov eax, ebx`) and does nothing else.
    """

    code: bytes
    mnemonic: str
    opcode: str
    form: str
    category: str
    flow: Flow
    rep: bool
    reads_memory: bool
    writes_memory: bool
    itypes: tuple[str, ...]
    simd: SimdFacts | None
    register_move: bool = False

    @classmethod
    def undecodable(cls, code: bytes) -> Instruction:
        """What stands for bytes that are no instruction."""
        return cls(
            code=code,
            mnemonic="(bad)",
            opcode="INVALID",
            form="(bad)",
            category="INVALID",
            flow=Flow.INVALID,
            rep=False,
            reads_memory=False,
            writes_memory=False,
            itypes=("other",),
            simd=None,
        )

    @property
    def kind(self) -> tuple[object, ...]:
        """All that it says but its code."""
        return (
            *(self.mnemonic, self.opcode, self.form, self.category, self.flow, self.rep),
            *(self.reads_memory, self.writes_memory, self.itypes, self.simd, self.register_move),
        )

    @property
    def length(self) -> int:
        """Length of the encoding in bytes."""
        return len(self.code)
