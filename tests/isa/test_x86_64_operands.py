"""Which registers instructions read and write: what iced says of them against capstone, for every form in
real libraries.

capstone 5 forgets registers of some instructions and invents others; where it does, the manual says so.
"""

from __future__ import annotations

from functools import cache

import capstone
import pytest
from iced_x86 import Decoder, EncodingKind, Mnemonic, Register, RegisterExt
from test_x86_64_libraries import LIBRARIES, distinct_forms

from livepro.isa.operands import RegisterKind
from livepro.isa.x86_64.operands import operands, register

INVENTED = {
    # SDM vol. 2, by instruction.
    Mnemonic.NOP: "reads nothing, its address included",
    Mnemonic.RESERVEDNOP: "reads nothing, its address included",
    Mnemonic.LEAVE: "moves RBP to RSP, which it does not read",
    Mnemonic.TEST: "writes flags only",
    Mnemonic.CDQ: "writes EDX only",
    Mnemonic.CQO: "writes RDX only",
    Mnemonic.CWD: "writes DX only",
    Mnemonic.STOSQ: "counts in RCX only with a rep prefix",
    Mnemonic.VMWRITE: "writes no register",
}
"""Registers that capstone names and the manual does not."""
FORGOTTEN = {
    Mnemonic.CMPXCHG: "writes the accumulator, and compares its first operand",
    Mnemonic.TEST: "reads both operands",
    Mnemonic.SYSCALL: "writes RCX and R11",
    Mnemonic.ENTER: "pushes RBP, and moves RSP",
    Mnemonic.XLATB: "reads AL and RBX, writes AL",
    Mnemonic.RDPKRU: "reads ECX, writes EAX and EDX",
    Mnemonic.WRPKRU: "reads EAX, ECX and EDX",
    Mnemonic.CALL: "a far one pushes, too",
    **dict.fromkeys((Mnemonic.IRET, Mnemonic.IRETD, Mnemonic.IRETQ, Mnemonic.RETF), "pops"),
    **dict.fromkeys((Mnemonic.PUSH, Mnemonic.POP), "moves RSP if it is a segment's, too"),
    **dict.fromkeys(
        (
            *(Mnemonic.CVTSI2SD, Mnemonic.CVTSI2SS, Mnemonic.CVTSS2SD, Mnemonic.CVTSD2SS),
            *(Mnemonic.SQRTSD, Mnemonic.SQRTSS),
        ),
        "keeps the upper part of what it writes",
    ),
    Mnemonic.VZEROUPPER: "keeps the lower parts",
    Mnemonic.VBROADCASTI128: "writes its first operand",
    Mnemonic.ADOX: "adds to its first operand",
    **dict.fromkeys(
        (Mnemonic.KUNPCKWD, Mnemonic.KUNPCKDQ, Mnemonic.KTESTD), "reads its sources and writes its target"
    ),
    Mnemonic.VMWRITE: "reads both operands",
    Mnemonic.MOVSD: "counts in RCX with a repne prefix, too",
}
"""Registers that the manual names and capstone does not."""


def forgets(mnemonic: int) -> bool:
    name = MNEMONICS[mnemonic]
    return (
        mnemonic in FORGOTTEN
        or name.startswith("CMOV")  # keeps its target where the condition is false
        or "GATHER" in name  # keeps lanes of its target, clears its mask
    )


MNEMONICS = {number: name for name, number in vars(Mnemonic).items() if isinstance(number, int)}
NUMBERS = {name.lower(): number for name, number in vars(Register).items() if isinstance(number, int)}
NUMBERS |= {f"r{n}b": NUMBERS[f"r{n}l"] for n in range(8, 16)}


@cache
def disassembler() -> capstone.Cs:
    out = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    out.detail = True
    return out


def wholes(names: list[str]) -> set[str]:
    """Whole registers by capstone's names, but for flags, segments and their like."""
    out = set()
    for name in names:
        number = NUMBERS.get({"st": "st0"}.get(name, name.replace("(", "").replace(")", "")))
        if number is not None and register(number).kind is not RegisterKind.OTHER:
            out.add(register(number).whole)
    return out


def told(code: bytes) -> tuple[set[str], set[str], set[str], set[str]] | None:
    """What is read and written by capstone, and by livepro; None if capstone does not know the encoding."""
    found = next(disassembler().disasm(code, 0, 1), None)
    if found is None or found.size != len(code):
        return None
    read, written = found.regs_access()
    mine = operands(code)
    sets = [{r.whole for r in of if r.kind is not RegisterKind.OTHER} for of in (mine.reads, mine.writes)]
    return wholes([found.reg_name(r) for r in read]), wholes([found.reg_name(r) for r in written]), *sets


def x87(code: bytes) -> bool:
    return MNEMONICS[Decoder(64, code).decode().mnemonic].startswith("F")


@pytest.mark.parametrize("name", LIBRARIES)
def test_capstone_names_no_register_that_is_not_ours(name: str) -> None:
    """But for what it invents; and it takes masks that are written for read, x87's operands for others."""
    differ = []
    for code in distinct_forms(name):
        found, decoded = told(code), Decoder(64, code).decode()
        if found is None or decoded.mnemonic in INVENTED or x87(code):
            continue
        read, written, reads, writes = found
        target = RegisterExt.is_k(decoded.op0_register) and {register(decoded.op0_register).whole}
        if (read - (target or set())) - reads or written - writes:
            differ.append((code.hex(), str(decoded), read - reads, written - writes))
    assert differ == []


@pytest.mark.parametrize("name", LIBRARIES)
def test_all_our_registers_are_capstones(name: str) -> None:
    """But for what it forgets, and for EVEX, where it does so with every mask, rounding and broadcast."""
    differ, compared = [], 0
    for code in distinct_forms(name):
        found, decoded = told(code), Decoder(64, code).decode()
        if found is None or decoded.encoding == EncodingKind.EVEX or x87(code):
            continue
        if forgets(decoded.mnemonic):
            continue
        read, written, reads, writes = found
        compared += 1
        if reads - read or writes - written:
            differ.append((code.hex(), str(decoded), reads - read, writes - written))
    assert differ == []
    assert compared > 300


def test_evex_operands_are_capstones_without_masks_and_rounding() -> None:
    """Where it does not forget: moves and arithmetic of whole vectors."""
    same = 0
    for code in distinct_forms("openblas"):
        found, decoded = told(code), Decoder(64, code).decode()
        if found is not None and decoded.encoding == EncodingKind.EVEX:
            same += found[:2] == found[2:]
    assert same > 100


def test_what_does_nothing_reads_nothing() -> None:
    for code in ("0f1f440000", "0f1975ad", "0f1ff7", "90"):
        found = operands(bytes.fromhex(code))
        assert all(r.kind is RegisterKind.OTHER for r in (*found.reads, *found.writes)), code
