"""One AArch64 instruction as capstone writes it, taken apart.

capstone's text carries what classification needs: the preferred mnemonic and,
in the operands, arrangement specifiers (`.4s`), lane indexes and predicates.
Its groups and access flags do not: they are empty for SVE and for most
extensions. What an encoding is and how it accesses memory therefore comes from
`encoding`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

LANE_BITS: Final = {"b": 8, "h": 16, "s": 32, "d": 64, "q": 128}

_OPERAND = re.compile(
    r"(?P<scalable>z)\d+(?:\.(?P<zlane>[bhsdq]))?"
    r"|(?P<matrix>za)(?:\d+)?(?P<slice>[hv])?(?:\.(?P<malane>[bhsdq]))?"
    r"|v\d+(?:\.(?P<count>\d*)(?P<lane>[bhsdq])(?P<index>\[\d+\])?)?"
    r"|(?P<scalar>[bhsdq])\d+\b"
    r"|p[n]?\d+(?:[./](?P<predicate>\w))?"
    r"|(?P<general>[wx])(?:\d+|zr|sp)"
    r"|w?sp"
)


@dataclass(frozen=True, slots=True)
class Register:
    """A register operand.

    `kind` is Z (scalable vector), ZA (matrix), V (vector, arranged in `count`
    lanes), LANE (one lane of a V), FP (scalar B to Q register), P (predicate)
    or R (general). `lane` is the number of bits of a lane (Z, V, LANE and ZA: 0
    if the text does not say), of the whole register (FP) or of the general
    register.
    """

    kind: str
    lane: int
    count: int = 1

    @property
    def bits(self) -> int:
        """Bits that the operand names: 0 where they depend on the vector length."""
        if self.kind == "LANE":
            return 128  # a lane index reaches into the whole register
        return 0 if self.kind in ("Z", "ZA", "P") else self.lane * self.count


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction as text: `mnemonic` in lower case, empty if capstone does not name the word;
    `operands` as text; `registers` those outside of address brackets, in order."""

    word: int
    mnemonic: str
    operands: str
    registers: tuple[Register, ...]

    @property
    def known(self) -> bool:
        """Whether capstone names the word."""
        return bool(self.mnemonic)

    @property
    def signature(self) -> str:
        """Mnemonic and operand kinds, e.g. ``FMLA v.4s, v.4s, v.s[i]``."""
        return f"{self.mnemonic.upper()} {_generalise(self.operands)}".strip()


@cache
def _capstone() -> Any:
    from capstone import CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, Cs

    return Cs(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN)


def text_of(code: bytes, address: int) -> tuple[str, str]:
    """Mnemonic and operands of the instruction, both empty if capstone does not name it."""
    for _, _, mnemonic, operands in _capstone().disasm_lite(code, address, 1):
        return mnemonic, operands
    return "", ""


def form_of(word: int) -> Form:
    """Take the instruction `word` apart."""
    mnemonic, operands = text_of(word.to_bytes(4, "little"), 0)
    outside = re.sub(r"\[(?!\d+\])[^]]*\]!?", "", operands)  # addresses, not lane indexes
    return Form(word, mnemonic, operands, tuple(_register(m) for m in _OPERAND.finditer(_bare(outside))))


def _bare(operands: str) -> str:
    """Operands without what only looks like a register: immediates and symbolic words."""
    return re.sub(
        r"#-?(0x)?[\w.+-]+|\b(?![wx]zr\b|wsp\b)[a-z]{3,}\w*\b(?!\.)|\b(lsl|lsr|asr|ror|msl|[su]xt[bhwx])\b",
        "",
        operands,
    )


def _register(match: re.Match[str]) -> Register:
    part = match.groupdict()
    if part["scalable"]:
        return Register("Z", LANE_BITS.get(part["zlane"] or "", 0))
    if part["matrix"]:
        return Register("ZA", LANE_BITS.get(part["malane"] or "", 0))
    if part["scalar"]:
        return Register("FP", LANE_BITS[part["scalar"]])
    text = match.group()
    if text[0] == "v":
        lane = LANE_BITS.get(part["lane"] or "", 0)
        if part["index"] or (lane and not part["count"]):
            return Register("LANE", lane)
        return Register("V", lane, int(part["count"] or 1))
    if text[0] == "p":
        return Register("P", LANE_BITS.get(part["predicate"] or "", 0))
    return Register("R", 32 if text[0] == "w" else 64)


_GENERALISATIONS: Final = (
    (re.compile(r"#-?(0x[0-9a-f]+|[\d.]+(e[+-]?\d+)?)"), "#i"),
    (re.compile(r"\b(za)\d+"), r"\1"),
    (re.compile(r"\b([bhsdqvzpwx]|pn)\d+\b"), r"\1"),
    (re.compile(r"\b([wx])zr\b"), r"\1"),
    (re.compile(r"\[\d+\]"), "[i]"),
)


def _generalise(operands: str) -> str:
    for pattern, replacement in _GENERALISATIONS:
        operands = pattern.sub(replacement, operands)
    return operands
