"""One AArch64 word to everything livepro says about it.

Control flow, memory accesses, category and SIMD set come from the encoding;
capstone gives the names. A word that capstone 5 does not name but that lies in
an allocated space is an instruction all the same (see `decoder`): its opcode
is UNKNOWN, and the facts that the encoding tells stay right.
"""

from __future__ import annotations

import re
from functools import cache

from livepro.isa.aarch64.category import category
from livepro.isa.aarch64.decoder import decode_word
from livepro.isa.aarch64.encoding.extensions import extension_of
from livepro.isa.aarch64.encoding.memory import memory_access
from livepro.isa.aarch64.form import Form, form_of, text_of
from livepro.isa.aarch64.itypes import itypes
from livepro.isa.aarch64.simd import simd_facts
from livepro.model import Flow, Instruction

UNKNOWN = "UNKNOWN"
"""Opcode of an instruction that capstone does not name."""


@cache
def describe(code: bytes) -> Instruction:
    """Facts about the one instruction that `code` begins with.

    `opcode` is Arm's preferred name, an alias where there is one (CMP, MOV,
    LSL), conditional branches with their condition (B.EQ). A word that is no
    instruction, or fewer than four bytes, is an INVALID instruction of all of
    `code`. Atomic operations and compare-and-swap read and write, a
    store-exclusive writes even when it fails; a prefetch accesses nothing.
    """
    word = int.from_bytes(code[:4], "little")
    flow = decode_word(word)[0]
    if len(code) < 4 or flow is Flow.INVALID:
        return Instruction.undecodable(code)
    form = form_of(word)
    group = category(word, form.mnemonic, flow)
    access = memory_access(word, prefetch=form.mnemonic.startswith("prf"))
    return Instruction(
        code=code[:4],
        mnemonic=form.mnemonic or "unknown",
        opcode=form.mnemonic.upper() or UNKNOWN,
        form=form.signature or UNKNOWN,
        category=group,
        flow=flow,
        rep=False,
        reads_memory=access[0],
        writes_memory=access[1],
        itypes=itypes(group, extension_of(word), *access),
        simd=simd_facts(form, access),
        register_move=_is_register_move(form),
    )


def disassemble(code: bytes, address: int) -> str:
    """The instruction that `code` begins with, its targets and pc-relative operands as seen
    from `address`; ``.inst`` with the word where capstone names none, ``(bad)`` where none is."""
    word = int.from_bytes(code[:4], "little")
    if len(code) < 4 or decode_word(word)[0] is Flow.INVALID:
        return "(bad)"
    mnemonic, operands = text_of(code[:4], address)
    return f"{mnemonic} {operands}".strip() if mnemonic else f".inst {word:#010x}"


def assembly(code: bytes, address: int) -> str:
    """The instruction that `code` begins with as assemblers take it; empty where capstone names none.

    What it means by its distance from the pc (a branch's target, a literal) is a symbol, ``L``
    with the address in hexadecimal: to LLVM a number is a distance, to GNU as an address.
    """
    text = disassemble(code, address)
    if text.startswith((".inst", "(bad)")):
        return ""
    word = int.from_bytes(code[:4], "little")
    relative = decode_word(word)[1] is not None or any(word & mask == bits for mask, bits in _LITERALS)
    return _LAST_NUMBER.sub(r"L\1", text) if relative else text


_LITERALS = ((0x1F000000, 0x10000000), (0x3B000000, 0x18000000))
""" "PC-rel. addressing" (ADR, ADRP) and "Load register (literal)", as (mask, bits)."""

_LAST_NUMBER = re.compile(r"#(?:0x)?([0-9a-f]+)$")


def _is_register_move(form: Form) -> bool:
    return form.mnemonic == "mov" and [r.kind for r in form.registers] == ["R", "R"]
