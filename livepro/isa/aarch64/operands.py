"""Register operands of AArch64 instructions, by capstone's tables."""

from __future__ import annotations

from functools import cache
from typing import Any

from livepro.isa.operands import Operands, Register, RegisterKind

_COMPARING = frozenset(("cmp", "cmn", "tst", "ccmp", "ccmn", "fcmp", "fcmpe", "fccmp", "fccmpe"))


@cache
def _capstone() -> Any:
    import capstone

    made = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    made.detail = True
    return made


@cache
def register(name: str) -> Register:
    """A register by capstone's name of it."""
    upper = name.upper()
    aliases = {"LR": "X30", "FP": "X29", "WSP": "SP", "IP0": "X16", "IP1": "X17"}
    whole = aliases.get(upper, upper)
    letter, number = whole[:1], whole[1:]
    if whole == "SP" or (letter in "WX" and number.isdigit()):
        return Register(upper, whole if letter == "S" else f"X{number}", RegisterKind.GENERAL)
    if letter in "BHSDQV" and number.isdigit():
        return Register(upper, f"Z{number}", RegisterKind.VECTOR)
    if letter == "Z" and number.isdigit():
        return Register(upper, whole, RegisterKind.WIDE)
    if letter == "P" and number.isdigit():
        return Register(upper, whole, RegisterKind.MASK)
    return Register(upper, whole, RegisterKind.OTHER)


def operands(code: bytes) -> Operands:
    """See `livepro.isa.base.Isa`. The zero register is none; NZCV counts as one operand."""
    from capstone import CS_OP_MEM, CS_OP_REG

    decoded = next(_capstone().disasm(code, 0), None)
    if decoded is None:
        return Operands((), (), 0)
    name = decoded.reg_name
    read, written = decoded.regs_access()
    zero = {"xzr", "wzr"}
    reads = [register(name(number)) for number in read if name(number) not in zero]
    writes = [register(name(number)) for number in written if name(number) not in zero]
    if (
        decoded.mnemonic in _COMPARING
    ):  # aliases without a destination: capstone takes the first operand for one
        reads += [one for one in writes if one.kind is not RegisterKind.OTHER]
        writes = [one for one in writes if one.kind is RegisterKind.OTHER]
    addressing: set[str] = set()
    explicit = 0
    for operand in decoded.operands:
        if operand.type == CS_OP_REG:
            explicit += name(operand.reg) not in zero
        elif operand.type == CS_OP_MEM:
            for number in (operand.mem.base, operand.mem.index):
                if number:
                    addressing.add(register(name(number)).whole)
    named = {register(name(o.reg)).whole for o in decoded.operands if o.type == CS_OP_REG}
    implicit = {r.whole for r in (*reads, *writes)} - named - addressing
    return Operands(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)), explicit + len(implicit))
