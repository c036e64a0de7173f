"""MICA's own groups of instruction types, where no specification is given (mica_itypes.cpp)."""

from __future__ import annotations

from livepro.model.itypes import Identifier, IdentifierType, ItypesSpec


def _group(**names: str) -> tuple[Identifier, ...]:
    return tuple(
        Identifier(IdentifierType[kind], name) for kind, given in names.items() for name in given.split()
    )


BUILT_IN = ItypesSpec(
    (
        _group(SPECIAL="mem_read"),
        _group(SPECIAL="mem_write"),
        _group(CATEGORY="COND_BR UNCOND_BR", OPCODE="LEAVE RET_NEAR CALL_NEAR"),
        _group(CATEGORY="LOGICAL DATAXFER BINARY FLAGOP BITBYTE"),
        _group(CATEGORY="X87_ALU FCMOV"),
        _group(CATEGORY="POP PUSH"),
        _group(CATEGORY="SHIFT"),
        _group(CATEGORY="STRINGOP"),
        _group(CATEGORY="MMX SSE"),
        _group(CATEGORY="INTERRUPT ROTATE SEMAPHORE CMOV SYSTEM MISC PREFETCH SYSCALL"),
        _group(CATEGORY="WIDENOP NOP"),
        _group(SPECIAL="reg_transfer"),
    )
)
"""Groups 0 to 11; what none of them picks by category or operation is `other`. The categories are
XED's: on AArch64 few of them occur."""

NAMES = (
    *(
        "memory reads",
        "memory writes",
        "control",
        "arithmetic",
        "floating point",
        "stack",
        "shifts",
        "string",
    ),
    *("SSE and MMX", "system", "nop", "register transfers", "other"),
)
"""What people call these groups."""
