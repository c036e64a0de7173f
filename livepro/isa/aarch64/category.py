"""Operation names and categories of AArch64 instructions.

Categories bear the names that Intel XED has for the same thing (BINARY,
LOGICAL, DATAXFER, COND_BR ...), so that an instruction-type specification
written for x86-64 means the same here, and the encoding families (FP, ASIMD,
CRYPTO, SVE, SME) where vectors begin. PAC (pointer authentication) and BTI
(branch targets) have no counterpart but XED's CET. They come from the encoding
tables of the Arm ARM (DDI 0487), C4.1; where aliases divide a table (moves,
shifts), from capstone's preferred mnemonic.
"""

from __future__ import annotations

import re
from typing import Final

from livepro.isa.aarch64.encoding.extensions import extension_of
from livepro.isa.aarch64.encoding.memory import is_load_store
from livepro.model import Flow

CATEGORIES: Final = (
    *("BINARY", "LOGICAL", "DATAXFER", "SHIFT", "ROTATE", "BITBYTE", "FLAGOP", "CMOV", "PUSH", "POP"),
    *("COND_BR", "UNCOND_BR", "CALL", "RET", "SYSCALL", "INTERRUPT", "SYSTEM", "MISC", "NOP"),
    *("SEMAPHORE", "PREFETCH", "STRINGOP", "MTE", "PAC", "BTI", "FP", "ASIMD", "CRYPTO", "SVE", "SME"),
    "INVALID",
)
"""Every value of `Instruction.category` on AArch64."""

_BY_FLOW: Final = {
    Flow.JUMP: "UNCOND_BR",
    Flow.INDIRECT_JUMP: "UNCOND_BR",
    Flow.BRANCH: "COND_BR",
    Flow.CALL: "CALL",
    Flow.INDIRECT_CALL: "CALL",
    Flow.RETURN: "RET",
    Flow.SYSCALL: "SYSCALL",
    Flow.INVALID: "INVALID",
}

_SP: Final = 31


def category(word: int, mnemonic: str, flow: Flow) -> str:
    """The category of `word`, which capstone calls `mnemonic` (empty if it does not)."""
    if flow is Flow.TRAP:
        return "RET" if word >> 24 == 0xD6 else "INTERRUPT"  # ERET; BRK, HLT, UDF ...
    if flow in _BY_FLOW:
        return _BY_FLOW[flow]
    if is_load_store(word):
        return _load_store(word)
    extension = extension_of(word)
    if word >> 24 == 0xD5:
        return _system(word)
    if extension:
        return extension
    if word & 0x1C000000 == 0x10000000:
        return _immediate(word, mnemonic)
    return _register(word, mnemonic)


def _load_store(word: int) -> str:
    """ "Loads and Stores"."""
    kind, base, low = word >> 28 & 3, word >> 5 & 31, word >> 10 & 3
    extension = extension_of(word)
    if kind == 2 and base == _SP:
        mode = word >> 23 & 3  # 1: post-indexed, 3: pre-indexed
        if (mode, word >> 22 & 1) in ((3, 0), (1, 1)):
            return "POP" if word >> 22 & 1 else "PUSH"
    if kind == 3 and base == _SP and word & 0x01200000 == 0 and low in (1, 3):
        loads = word >> 22 & 3 != 0 if not extension else word >> 22 & 1
        if bool(loads) == (low == 1):
            return "POP" if loads else "PUSH"
    if extension:
        return extension
    if kind == 0:  # exclusives, compare and swap; load-acquire and store-release
        return "DATAXFER" if word & 0x00A00000 == 0x00800000 else "SEMAPHORE"
    if kind == 1:
        return _literal_and_rest(word)
    if kind == 3:
        if word & 0x01200C00 == 0x00200000:  # "Atomic memory operations", but not LDAPR and 64-byte accesses
            return "DATAXFER" if word >> 15 & 1 and word >> 12 & 7 else "SEMAPHORE"
        pointer = word & 0x01200400 == 0x00200400  # LDRAA, LDRAB
        if word & 0xC0800000 == 0xC0800000 and not pointer:
            return "PREFETCH"
    return "DATAXFER"


def _literal_and_rest(word: int) -> str:
    """Bits 29:28 = 01 of "Loads and Stores"."""
    if not word >> 24 & 1:
        return "PREFETCH" if word >> 30 == 3 else "DATAXFER"
    if word >> 21 & 1:
        return "MTE" if word >> 30 == 3 else "SEMAPHORE"
    return "STRINGOP" if word >> 10 & 3 == 1 else "DATAXFER"


def _system(word: int) -> str:
    """ "Hints", "Barriers", "PSTATE", "System instructions", "System register move"."""
    if word & 0xFFFFF01F == 0xD503201F:
        number = word >> 5 & 0x7F  # CRm:op2
        if number in _PAC_HINTS:
            return "PAC"
        if number & 0b1111001 == 0b0100000:
            return "BTI"  # BTI, BTI c, BTI j, BTI jc: 32, 34, 36, 38
        return "SYSTEM" if 1 <= number <= 22 else "NOP"  # YIELD to CLRBHB; the rest does nothing
    if word & 0xFFFFF01F == 0xD503301F:
        return "SEMAPHORE" if word >> 5 & 7 == 2 else "MISC"  # CLREX; DSB, DMB, ISB, SB
    if word & 0xFFFFFF1F == 0xD500401F:
        return "FLAGOP" if word >> 5 & 7 <= 2 else "SYSTEM"  # CFINV, XAFLAG, AXFLAG
    return "SYSTEM"


_PAC_HINTS: Final = frozenset((7, 8, 10, 12, 14, *range(24, 32), 39))
"""XPACLRI, PACIA1716 to AUTIB1716, PACIAZ to AUTIBSP, PACM."""


def _immediate(word: int, mnemonic: str) -> str:
    """ "Data Processing -- Immediate", by bits 25:23."""
    table = word >> 23 & 7
    if table in (0, 1, 2, 3):
        return "DATAXFER" if mnemonic == "mov" else "BINARY"  # ADR; ADD, SUB; minimum and maximum; tags
    if table == 4:
        return "DATAXFER" if mnemonic == "mov" else "LOGICAL"
    if table == 5:
        return "DATAXFER"  # MOVN, MOVZ, MOVK
    if table == 6:  # "Bitfield"
        if mnemonic in ("lsl", "lsr", "asr"):
            return "SHIFT"
        return "DATAXFER" if re.fullmatch(r"[su]xt[bhw]", mnemonic) else "BITBYTE"
    if word & 0x60000000:
        return "PAC"  # AUTIASPPC and family
    return "ROTATE" if mnemonic == "ror" else "SHIFT"  # EXTR


def _register(word: int, mnemonic: str) -> str:
    """ "Data Processing -- Register", by bits 28 and 24:21."""
    op = word >> 21 & 15
    if not word >> 28 & 1:
        if op & 8:
            return "BINARY"  # ADD, SUB (shifted or extended register)
        return "DATAXFER" if mnemonic == "mov" else "LOGICAL"
    if op == 0:
        rotates = word >> 10 & 3 and not word >> 13 & 1  # RMIF, SETF8, SETF16; ADC, SBC, ADDPT
        return "FLAGOP" if rotates else "BINARY"
    if op == 4:
        return "CMOV"  # CSEL and family, CSET
    if op == 6:
        return _one_source(word) if word >> 30 & 1 else _two_sources(word)
    return "BINARY"  # CCMP, CCMN; MADD, SMULH and family


def _one_source(word: int) -> str:
    if word >> 16 & 31 == 1:
        return "PAC"
    return "BINARY" if word >> 10 & 63 == 8 else "BITBYTE"  # ABS; RBIT, REV, CLZ, CLS, CTZ, CNT


def _two_sources(word: int) -> str:
    opcode = word >> 10 & 63
    if opcode == 12:
        return "PAC"  # PACGA
    if 8 <= opcode <= 11:
        return "ROTATE" if opcode == 11 else "SHIFT"  # LSLV, LSRV, ASRV, RORV
    return "BINARY"  # UDIV, SDIV, CRC32, minimum and maximum, tags
