"""What a SIMD instruction does, by the stem of its mnemonic.

Arm's mnemonics are built from parts: S or U for the sign, Q for saturation, R
for rounding, F for floating point in front; L, W, N for longer, wider and
narrower elements, P for pairs, V for a reduction, B and T for even and odd
elements behind (Arm ARM, C1.2 and C7.2). So a rule covers a stem with whatever
stands around it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from livepro.isa.aarch64.form import Form
from livepro.model import SimdType

T = SimdType


def _rules(*rows: tuple[str, SimdType, str]) -> tuple[tuple[re.Pattern[str], SimdType, str], ...]:
    return tuple((re.compile(pattern), kind, phrase) for pattern, kind, phrase in rows)


_TAIL: Final = r"(l|w|n|ln|hn|lb|lt|wb|wt|nb|nt|lbt|ltb|hnb|hnt)?"

_RULES: Final = _rules(
    # State of the unit, not of its elements.
    (r"mrs|msr", T.STATE_MANAGEMENT, "move a control or status register"),
    (r"smst(art|op)", T.STATE_MANAGEMENT, "enter or leave a streaming mode"),
    (r"setffr|rdffrs?|wrffr", T.STATE_MANAGEMENT, "move the first-fault register"),
    (r"prf[bhwd]", T.STATE_MANAGEMENT, "prefetch into a cache"),
    # Between elements and other places.
    (r"[su]mov|last[ab]|clast[ab]", T.EXTRACT, "extract"),
    (r"ins|insr", T.INSERT, "insert"),
    (r"(bf?|f)cvt.*|[su]cvtf|fjcvtzs", T.CONVERSION, "convert"),
    (r"f?mov|movs|movi|mvni|f?cpy|dupm|fdup|movprfx|mova|fcsel|ptrues?|pfalse|zero", T.DATA_TRANSFER, "move"),
    (r"[su]?xtl|[su]unpk(hi|lo)|punpk(hi|lo)|[su]xt[bhw]", T.UNPACK, "widen"),
    (r"zip[12]", T.UNPACK, "interleave"),
    (r"xtn|[su]qxtu?n[bt]?", T.PACK, "narrow"),
    # Elements to elements.
    (r"tb[lx]", T.SHUFFLE, "look up in a table"),
    (r"trn[12]|uzp[12]", T.SHUFFLE, "permute"),
    (r"ext|splice|compact", T.SHUFFLE, "concatenate or compact"),
    (r"rev(16|32|64|[bhwd])?|rbit", T.SHUFFLE, "reverse"),
    (r"dup", T.SHUFFLE, "broadcast"),
    (r"p?sel", T.SHUFFLE, "blend"),
    (r"ptest|cmtst", T.COMPARISON, "test bits"),
    (
        r"f?c?cmp(eq|ge|gt|hi|hs|le|lo|ls|lt|ne|uo|e)?|f?cm(eq|ge|gt|hi|hs|le|lt|ne|uo)",
        T.COMPARISON,
        "compare",
    ),
    (r"fccmpe?|f?ac(ge|gt|le|lt)|cterm(eq|ne)", T.COMPARISON, "compare"),
    (r"while(ge|gt|hi|hs|le|lo|ls|lt|rw|wr)", T.COMPARISON, "compare with a counter"),
    (r"n?match", T.COMPARISON, "find equal elements"),
    (r"brk(a|b|n|pa|pb)s?|pfirst|pnext", T.LOGICAL, "break a predicate"),
    (
        r"(and|orr|eor|bic|orn|nand|nor)s?|(not|mvn)s?|andv|orv|eorv|eor(bt|tb)",
        T.LOGICAL,
        "bitwise operation",
    ),
    (r"n?bsl|bsl[12]n|bit|bif", T.LOGICAL, "bitwise select"),
    (r"eor3|bcax|rax1|xar", T.LOGICAL, "bitwise function of three"),
    (r"sli|sri", T.SHIFT, "shift and insert"),
    (r"[su]r?sra", T.SHIFT, "shift and accumulate"),
    (r"[su]?q?r?sh[lr](l|r|u|n|un)?[bt]?", T.SHIFT, "shift"),
    (r"asrd?r?|ls[lr]r?", T.SHIFT, "shift"),
    # Arithmetic.
    (r"sha(1|256|512).*|sm3.*", T.ARITHMETIC, "secure hash"),
    (r"aes.*", T.ARITHMETIC, "AES"),
    (r"sm4.*", T.ARITHMETIC, "SM4"),
    (r"(bf|f|su|us|s|u)mop[as]", T.ARITHMETIC, "outer product"),
    (r"(bf|f|su|us|s|u|c)dot", T.ARITHMETIC, "dot product"),
    (r"(bf|f|s|u|us)mmla", T.ARITHMETIC, "matrix multiply and add"),
    (r"fcmla|cmla|sqrdcmlah|[fsq]*cadd", T.ARITHMETIC, "complex arithmetic"),
    (r"fn?m(add|sub|ad|sb)|mad|msb", T.ARITHMETIC, "multiply and add"),
    (rf"(bf|f|fn|s|u|sq|sqd|sqrd)?ml[as]h?{_TAIL}", T.ARITHMETIC, "multiply and add"),
    (rf"(s|u|sqd|sqrd|fn|f|p)?mul[hx]?{_TAIL}|ftsmul", T.ARITHMETIC, "multiply"),
    (r"[fsu]divr?", T.ARITHMETIC, "divide"),
    (r"fsqrt", T.ARITHMETIC, "square root"),
    (r"[fu]rsqrt[es]", T.ARITHMETIC, "reciprocal square root"),
    (r"[fu]recp[esx]", T.ARITHMETIC, "reciprocal"),
    (r"f?(s|u)?(max|min)(nm)?[pv]?", T.ARITHMETIC, "minimum or maximum"),
    (r"[su]clamp", T.ARITHMETIC, "clamp"),
    (rf"[fsu]?(abd|aba){_TAIL}", T.ARITHMETIC, "absolute difference"),
    (r"f?(sq)?(abs|neg)", T.ARITHMETIC, "absolute value or negation"),
    (r"[su]adalp|[su]addl[pv]|f?addp|[sfu]?addv|fadda|add[hv]a", T.ARITHMETIC, "add across elements"),
    (rf"(f|s|u|r|sq|uq|su|us|sh|uh|srh|urh|usq|suq)?add{_TAIL}|adcl[bt]", T.ARITHMETIC, "add"),
    (rf"(f|s|u|r|sq|uq|sh|uh)?subr?{_TAIL}|[su]hsubr|sbcl[bt]", T.ARITHMETIC, "subtract"),
    (r"frint.*", T.ARITHMETIC, "round"),
    (r"fscale|flogb|fexpa|ftmad|ftssel", T.ARITHMETIC, "exponent or trigonometric step"),
    (r"clz|cls|cnt|cnot", T.ARITHMETIC, "count bits"),
    (r"hist(cnt|seg)", T.ARITHMETIC, "histogram"),
    (r"bext|bdep|bgrp", T.ARITHMETIC, "gather or scatter bits"),
    (r"index|adr", T.ARITHMETIC, "make indexes"),
    (r"cnt[bhwdp]|rds?vl|adds?[vp]l|(sq|uq)?(inc|dec)[bhwdp]", T.ARITHMETIC, "count elements of a vector"),
)


@cache
def operation_of(mnemonic: str) -> tuple[SimdType, str] | None:
    """Return the type of the SIMD operation that capstone calls `mnemonic` and a verb phrase.

    Loads and stores are not among them: their encoding tells. None if no rule
    knows the name.
    """
    for name in (mnemonic, mnemonic.removesuffix("2")):
        for pattern, kind, phrase in _RULES:
            if pattern.fullmatch(name):
                return kind, phrase
    return None


def operation(form: Form) -> tuple[SimdType, str] | None:
    """Like `operation_of`, with moves told apart by what they move.

    `mov` and `fmov` are aliases of many encodings: to a lane they insert, from
    a lane to a register they extract, from a register to all lanes they
    broadcast. A long shift by zero is the widening move SXTL or UXTL, which
    capstone does not name so.
    """
    found = operation_of(form.mnemonic)
    if found is None:
        return None
    kind, phrase = found
    kinds = [register.kind for register in form.registers]
    if kind is T.DATA_TRANSFER and form.mnemonic in ("mov", "fmov") and len(kinds) == 2:
        if kinds[0] == "LANE":
            return T.INSERT, "insert"
        if kinds[1] == "LANE":
            return T.EXTRACT, "extract"
        if kinds[0] == "Z" and (kinds[1] in ("R", "FP") or re.search(r"\[\d+\]", form.operands)):
            return T.SHUFFLE, "broadcast"
    if re.fullmatch(r"[su]shll[bt2]?", form.mnemonic) and form.operands.endswith(", #0"):
        return T.UNPACK, "widen"
    return kind, phrase


def operation_by_space(word: int) -> SimdType:
    """The commonest type of operation of the encoding table that `word` is in: for an
    encoding that no rule knows, or that capstone does not name."""
    if word & 0x0E000000 == 0x0E000000 and word & 0x50000000 != 0x10000000:  # Advanced SIMD
        if word & 0x9F800400 == 0x0F000400:
            return T.SHIFT if word & 0x00780000 else T.DATA_TRANSFER
        if word & 0xBF208C00 == 0x0E000800:
            return T.SHUFFLE  # "Advanced SIMD permute"
        if word & 0xBF208C00 == 0x0E000000:
            return T.SHUFFLE  # "Advanced SIMD table lookup"
    if word >> 25 == 0b1100000 and not word >> 21 & 0b111:  # SME: moves to and from the array
        return T.DATA_TRANSFER
    return T.ARITHMETIC
