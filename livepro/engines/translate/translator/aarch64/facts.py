"""Facts about single AArch64 instructions that the translator needs, memoised by word.

Titles in quotes are those of the tables in the Arm ARM (DDI 0487), C4.1.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from livepro.engines.translate.translator.aarch64.encode import BASE
from livepro.isa.aarch64.decoder import decode_word
from livepro.isa.aarch64.encoding.memory import memory_access
from livepro.model import Flow


class Kind(IntEnum):
    """How the translator treats an instruction."""

    PLAIN = 0  # copied
    ADDRESS = 1  # ADR, ADRP: the same address put together anew
    LITERAL = 2  # a pc-relative load or prefetch
    LENT = 3  # mentions BASE: copied, with the program's own value there
    SYSCALL = 4
    NATIVE = 5  # stepped at its own address
    JUMP = 6
    BRANCH = 7
    CALL = 8
    INDIRECT_JUMP = 9
    INDIRECT_CALL = 10
    RETURN = 11
    INVALID = 12


class Exclusive(IntEnum):
    """What an instruction does to the exclusive monitor."""

    NONE = 0
    OPENS = 1  # LDXR and family
    CLOSES = 2  # STXR and family, CLREX


class Facts(NamedTuple):
    """`mentions` is a mask of general registers that the instruction may read or write (no
    fewer than it does), `kills` of those that it overwrites whole without reading them.
    `may_fault` is False only for integer instructions that every processor has;
    `writes` tells whether memory may be written. `distance` is the number of bytes
    to a direct target.
    """

    kind: Kind
    flow: Flow
    word: int
    distance: int
    mentions: int
    kills: int
    may_fault: bool
    writes: bool
    ends: bool
    condition_falls: bool
    simple: bool
    exclusive: Exclusive


_KINDS = {
    Flow.JUMP: Kind.JUMP,
    Flow.CALL: Kind.CALL,
    Flow.BRANCH: Kind.BRANCH,
    Flow.INDIRECT_JUMP: Kind.INDIRECT_JUMP,
    Flow.INDIRECT_CALL: Kind.INDIRECT_CALL,
    Flow.RETURN: Kind.RETURN,
    Flow.SYSCALL: Kind.SYSCALL,
    Flow.TRAP: Kind.NATIVE,
    Flow.INVALID: Kind.INVALID,
}

NEVER_FAULT = (5, 8, 9, 13)
"""Bits 28:25 of integer instructions that every processor has."""
BRANCHES_BY_REGISTER = (0xD61F0000, 0xD63F0000, 0xD65F0000)
"""br, blr, ret, without their register, which is in bits 9:5."""

_BIT = (*(1 << n for n in range(31)), 0)  # register 31 is SP or the zero register


def _following(field: int, count: int) -> int:
    return ((1 << count) - 1) << field & 0x7FFF_FFFF


def registers_of(word: int) -> tuple[int, int]:
    """Masks of the general registers that `word` may mention, and of those that it surely
    overwrites without reading them (only of instructions that cannot fault)."""
    d, n, a, m = word & 31, word >> 5 & 31, word >> 10 & 31, word >> 16 & 31
    group = word >> 25 & 15
    if group in (8, 9):
        return _immediate(word, d, n, m)
    if group in (5, 13):
        return _register(word, d, n, a, m)
    if group in (7, 15):
        return _vector(word, d, n)
    if group & 5 == 4:
        return _memory(word, d, n, a, m), 0
    if group in (10, 11):
        return _system(word, d, n)
    # SVE, SME (whose slices are indexed by w8 to w15 in fields of two bits) and what is reserved.
    slices = 0xFF00 if group == 0 else 0
    return _BIT[d] | _BIT[n] | _BIT[m] | slices, 0


def _immediate(word: int, d: int, n: int, m: int) -> tuple[int, int]:
    """ "Data Processing -- Immediate"."""
    kind = word >> 23 & 7
    if kind < 2:  # ADR, ADRP
        return _BIT[d], _BIT[d]
    if kind == 5:  # move wide: MOVK keeps the rest
        return _BIT[d], 0 if word >> 29 & 3 == 3 else _BIT[d]
    mentions = _BIT[d] | _BIT[n]
    if kind == 7:
        mentions |= _BIT[m]
        read = _BIT[n] | _BIT[m]
    else:
        read = _BIT[n]
    if kind == 3 or (kind == 6 and word >> 29 & 3 == 1) or (kind == 7 and word >> 29 & 3):
        return mentions, 0  # tags, min and max; BFM; PAC
    return mentions, _BIT[d] & ~read


def _register(word: int, d: int, n: int, a: int, m: int) -> tuple[int, int]:
    """ "Data Processing -- Register"."""
    if not word >> 28 & 1:  # logical and add/subtract, shifted or extended
        return _BIT[d] | _BIT[n] | _BIT[m], _BIT[d] & ~(_BIT[n] | _BIT[m])
    op = word >> 21 & 15
    if word >> 24 & 1:  # three sources
        read = _BIT[n] | _BIT[m] | _BIT[a]
        return _BIT[d] | read, _BIT[d] & ~read
    if op == 2:  # conditional compare
        return _BIT[n] | (0 if word >> 11 & 1 else _BIT[m]), 0
    if op in (0, 4) and not (op == 0 and word >> 10 & 63):  # add with carry, conditional select
        return _BIT[d] | _BIT[n] | _BIT[m], _BIT[d] & ~(_BIT[n] | _BIT[m])
    if op == 6 and word >> 30 & 1:  # one source; PAC reads its destination
        pac = m != 0
        implicit = _BIT[30] | _BIT[15] | _BIT[16] | _BIT[17] if pac else 0
        return _BIT[d] | _BIT[n] | implicit, 0 if pac else _BIT[d] & ~_BIT[n]
    if op == 6:  # two sources
        return _BIT[d] | _BIT[n] | _BIT[m], _BIT[d] & ~(_BIT[n] | _BIT[m])
    return _BIT[d] | _BIT[n] | _BIT[m], 0


def _vector(word: int, d: int, n: int) -> tuple[int, int]:
    """ "Data Processing -- Scalar Floating-Point and Advanced SIMD": conversions and copies
    to and from general registers."""
    converts = word & 0x5F000000 == 0x1E000000 and not word >> 21 & 1
    converts = converts or word & 0x5F20FC00 == 0x1E200000
    copies = word & 0x9FE08400 == 0x0E000400
    return (_BIT[d] | _BIT[n], 0) if converts or copies else (0, 0)


def _memory(word: int, d: int, n: int, a: int, m: int) -> int:
    """ "Loads and Stores"."""
    kind, vector = word >> 28 & 3, word >> 26 & 1
    if kind == 0:
        if vector:  # structures: the index is in the place of m when it is post-indexed
            return _BIT[n] | (_BIT[m] if word >> 23 & 1 else 0)
        return _following(m, 2) | _following(d, 2) | _BIT[a] | _BIT[n]
    if kind == 1:
        if not word >> 24 & 1:  # literal
            return 0 if vector or word >> 30 == 3 else _BIT[d]
        return _following(m, 2) | _following(d, 2) | _BIT[n] | _BIT[a]
    if kind == 2:  # pairs
        return _BIT[n] | (0 if vector else _BIT[d] | _BIT[a])
    data = 0 if vector else _BIT[d]
    if word >> 24 & 1:
        return _BIT[n] | data
    if word >> 21 & 1:
        if word >> 10 & 3 == 0:  # atomics; LD64B and its like take eight
            eight = word >> 30 == 3 and word >> 15 & 1 and not word >> 22 & 3 and not vector
            return _BIT[n] | _following(d, 8 if eight else 2) | _BIT[m]
        if word >> 10 & 3 == 2:
            return _BIT[n] | data | _BIT[m]
    return _BIT[n] | data


def _system(word: int, d: int, n: int) -> tuple[int, int]:
    """ "Branches, Exception Generating and System instructions"."""
    if word >> 22 == 0b1101010100:
        hint = word & 0xFFFFF01F == 0xD503201F  # some are PAC, on x16, x17 and x30
        return (_BIT[30] | _BIT[17] | _BIT[16] if hint else _BIT[d]), 0
    if word >> 22 == 0b1101010101:
        return _following(d, 2), 0
    if word >> 29 & 3 == 1:  # compare and branch, test and branch
        return _BIT[d] | (_BIT[word >> 16 & 31] if word >> 30 & 1 else 0), 0
    if word >> 26 & 31 == 5:  # B, BL
        return (_BIT[30] if word >> 31 else 0), 0
    if word >> 25 == 0b1101011:  # branches to registers; with PAC the modifier is in d
        return _BIT[n] | _BIT[d] | _BIT[30], 0
    return 0, 0


REGISTERS = (_following, _immediate, _register, _vector, _memory, _system, registers_of)
"""`registers_of`, and before it what it calls."""


def _exclusive(word: int) -> Exclusive:
    """ "Load/store exclusive register", "... pair": bits 29:24 are 001000, bit 23 is clear, and
    with bit 21 set bit 31 is too (else: CASP). CLREX."""
    if word & 0x3EC00000 in (0x08000000, 0x08400000) and (not word >> 21 & 1 or word >> 31):
        return Exclusive.OPENS if word >> 22 & 1 else Exclusive.CLOSES
    return Exclusive.CLOSES if word & 0xFFFFF0FF == 0xD503305F else Exclusive.NONE


def _reads_pc(word: int) -> bool:
    """FEAT_PAuth_LR: instructions whose authentication code takes the pc in."""
    return word & 0xFFFF801F == 0xDAC1801E or word & 0xFF80001F in (0xF380001F, 0xF380001E)


def _kind(word: int, flow: Flow, mentions: int) -> Kind:
    if flow is not Flow.NEXT:
        kind = _KINDS[flow]
        if kind is Kind.RETURN and (word >> 24 == 0x55 or (word >> 10 & 63 and word & 31 != 31)):
            return Kind.NATIVE  # RETAASPPC, RETABSPPC and their register forms
        compares = word & 0x7E000000 == 0x74000000  # FEAT_CMPBR
        return Kind.NATIVE if kind is Kind.BRANCH and compares and mentions >> BASE & 1 else kind
    if word & 0x1F000000 == 0x10000000:
        return Kind.ADDRESS
    if _reads_pc(word) or word >> 24 == 0xDC:  # the latter is unallocated
        return Kind.NATIVE
    if word & 0x3B000000 == 0x18000000:
        return Kind.LITERAL
    return Kind.LENT if mentions >> BASE & 1 else Kind.PLAIN


def learn(word: int) -> Facts:
    """The facts of an instruction word."""
    flow, distance = decode_word(word)
    mentions, kills = registers_of(word)
    kind = _kind(word, flow, mentions)
    group = word >> 25 & 15
    return Facts(
        kind=kind,
        flow=flow,
        word=word,
        distance=distance or 0,
        mentions=mentions,
        kills=kills if kind in (Kind.PLAIN, Kind.ADDRESS) else 0,
        may_fault=group not in NEVER_FAULT or kind is Kind.NATIVE,
        writes=memory_access(word)[1],
        ends=flow.ends_block,
        condition_falls=flow is Flow.BRANCH,
        simple=kind is Kind.PLAIN,
        exclusive=_exclusive(word),
    )
