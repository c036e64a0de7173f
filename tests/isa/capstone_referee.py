"""capstone as the referee of instruction lengths, and where capstone 5.0 is known to be wrong."""

from __future__ import annotations

from functools import cache

import capstone
from iced_x86 import Decoder, Instruction, OpKind

_REX = range(0x40, 0x50)
_PREFIXES = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3, *_REX))


@cache
def _disassembler() -> capstone.Cs:
    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def capstone_length(code: bytes) -> int | None:
    """Length of the instruction that `code` begins with, None if capstone knows none."""
    found = next(_disassembler().disasm_lite(code, 0, 1), None)
    return None if found is None else int(found[1])


def iced_length(code: bytes) -> int | None:
    """Length of the instruction that `code` begins with, None if iced knows none."""
    decoded = Decoder(64, code).decode()
    return None if decoded.is_invalid else int(decoded.len)


def known_defect(code: bytes) -> str:
    """Why capstone 5.0 takes the instruction that `code` begins with for shorter or
    longer than it is; empty if no reason is known."""
    decoded = Decoder(64, code).decode()
    start = next(at for at, byte in enumerate(code) if byte not in _PREFIXES)
    if code[start : start + 2] in (b"\x0f\xff", b"\x0f\xb9"):
        return "ud0 and ud1 have a ModRM byte (SDM vol. 2, UD), capstone leaves it out"
    if 0x66 in code[:start] and (_is_near_branch(decoded) or code[start] == 0xC2):
        return (
            "a 66 prefix does not shorten a near branch in 64-bit mode (SDM vol. 2, Jcc, RET), but capstone's"
        )
    return ""


def _is_near_branch(decoded: Instruction) -> bool:
    return decoded.op_count > 0 and bool(decoded.op0_kind == OpKind.NEAR_BRANCH64)
