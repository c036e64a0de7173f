"""Which registers an instruction reads and writes: static facts, by the names that stand in its code."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class RegisterKind(Enum):
    """What a register is for."""

    GENERAL = "general"
    X87 = "x87"
    MMX = "mmx"
    VECTOR = "vector"
    """128 bits or part of them: XMM, NEON."""
    WIDE = "wide"
    """Longer vectors: YMM, ZMM, SVE's Z."""
    MASK = "mask"
    """Opmasks of AVX-512, predicates of SVE."""
    OTHER = "other"
    """Flags, instruction pointer, segments, control."""


class Register(NamedTuple):
    """A register by its own name (``AL``), and by that of the whole one that it is part of (``RAX``)."""

    name: str
    whole: str
    kind: RegisterKind


class Operands(NamedTuple):
    """The registers of one instruction.

    `reads` and `writes` have each register once, explicit, implicit and those of addresses; what may be
    read or written (`cmov`, masked vectors) is. A register that is cleared by being combined with itself is
    read. `number` is that of register operands: explicit ones, implicit ones, the flags as one; not
    registers of addresses, not the instruction pointer.
    """

    reads: tuple[Register, ...]
    writes: tuple[Register, ...]
    number: int
