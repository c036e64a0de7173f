"""The names that instruction-type specifications may use on AArch64."""

from __future__ import annotations

from functools import cache

from livepro.isa.aarch64.category import CATEGORIES
from livepro.isa.aarch64.describe import UNKNOWN
from livepro.model.itypes import Vocabulary

_CONDITIONS = ("EQ", "NE", "HS", "LO", "MI", "PL", "VS", "VC", "HI", "LS", "GE", "LT", "GT", "LE", "AL", "NV")


@cache
def vocabulary() -> Vocabulary:
    """Every category and operation name that an instruction can have.

    Operations are capstone's, conditional branches with their condition, and the
    two for words that have no name.
    """
    from capstone import CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, Cs, arm64_const

    capstone = Cs(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN)
    names = {capstone.insn_name(number) for number in range(1, arm64_const.ARM64_INS_ENDING)}
    branches = {f"{stem}.{condition}" for stem in ("B", "BC") for condition in _CONDITIONS}
    unnumbered = {"BFC"}  # an alias that capstone prints without having a number for it
    return Vocabulary(
        categories=frozenset(CATEGORIES),
        opcodes=frozenset({n.upper() for n in names if n} | branches | unnumbered | {UNKNOWN, "INVALID"}),
    )
