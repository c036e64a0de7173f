"""What an AArch64 instruction does to general registers, as far as addresses behind it depend on them.

Titles in quotes are those of the tables in the Arm ARM (DDI 0487), C4.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from livepro.engines.translate.translator.aarch64.facts import Facts, Kind
from livepro.isa.aarch64.encoding import signed
from livepro.isa.aarch64.encoding.memory import memory_access

SP = 31
"""The stack pointer's number here; the zero register is never written."""
ALL = (1 << 32) - 1


class Effects(NamedTuple):
    """A mask of the general registers (bit 31: the stack pointer) that may have any value behind the
    instruction; but `moved`, a number (-1: none), is what it was and `by`."""

    written: int
    moved: int = -1
    by: int = 0


def _one(register: int) -> int:
    """The mask of a register of whose number 31 means the zero register."""
    return 1 << register & ~(1 << SP)


def _many(first: int, count: int) -> int:
    return sum(_one(min(first + n, SP)) for n in range(count))


@lru_cache(1 << 16)
def effects_of(facts: Facts) -> Effects:
    """The effects of an instruction; at least those that it has."""
    word = facts.word
    if facts.kind is Kind.NATIVE:
        return Effects(ALL)
    if facts.kind is Kind.SYSCALL:
        return Effects(1)
    group = word >> 25 & 15
    if group in (8, 9):
        return _immediate(word)
    if group in (5, 13):
        return Effects(_register(word, facts.mentions))
    if group in (7, 15):
        return Effects(facts.mentions & _one(word & 31))
    if group & 5 == 4:
        return _MEMORY[word >> 28 & 3](word, facts.mentions)
    if group in (10, 11):
        return Effects(facts.mentions)
    return Effects(facts.mentions | 1 << SP)  # SVE, SME: some add to the stack pointer


def _immediate(word: int) -> Effects:
    """ "Data Processing -- Immediate"."""
    to, source, kind = word & 31, word >> 5 & 31, word >> 23 & 7
    sets = word >> 29 & 1
    if kind == 2 and not sets:  # ADD, SUB
        if word >> 31 and to == source:
            amount = (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)
            return Effects(0, to, -amount if word >> 30 & 1 else amount)
        return Effects(1 << to)
    if kind == 3 or (kind == 4 and word >> 29 & 3 != 3):  # with tags; AND, ORR, EOR
        return Effects(1 << to)
    return Effects(_one(to))


def _register(word: int, mentions: int) -> int:
    """ "Data Processing -- Register"."""
    to = word & 31
    if not word >> 28 & 1:
        extended = word >> 24 & 1 and word >> 21 & 1
        return 1 << to if extended and not word >> 29 & 1 else _one(to)
    if word >> 24 & 1:
        return _one(to)
    operation = word >> 21 & 15
    if operation == 2:  # conditional compare
        return 0
    if operation == 6:
        if not word >> 30 & 1:  # IRG writes the stack pointer
            return 1 << to
        return mentions if word >> 16 & 31 else _one(to)
    return _one(to)


def _loaded(word: int, count: int = 1) -> int:
    """The registers that a load writes."""
    vector = word >> 26 & 1
    return 0 if vector or not memory_access(word)[0] else _many(word & 31, count)


def _writing_back(word: int, written: int, by: int) -> Effects:
    base = word >> 5 & 31
    if written >> base & 1:
        return Effects(written)
    return Effects(written, base, by)


def _exclusive_and_structures(word: int, mentions: int) -> Effects:
    """Bits 29:28 = 00."""
    if word >> 26 & 1:
        return Effects(1 << (word >> 5 & 31) if word >> 23 & 1 else 0)
    # STXR its status, LDXR and LDXP, CAS and CASP what was there.
    return Effects(_many(word >> 16 & 31, 2) | _many(word & 31, 2) | _one(word >> 10 & 31))


def _literal_and_rest(word: int, mentions: int) -> Effects:
    """Bits 29:28 = 01."""
    if not word >> 24 & 1:
        return Effects(0 if word >> 30 == 3 or word >> 26 & 1 else _one(word & 31))
    return Effects(mentions | 1 << (word >> 5 & 31))


def _pair(word: int, mentions: int) -> Effects:
    """Bits 29:28 = 10: "Load/store register pair"."""
    size, vector, mode = word >> 30, word >> 26 & 1, word >> 23 & 3
    if size == 3:
        return Effects(mentions | 1 << (word >> 5 & 31))
    loads = word >> 22 & 1 and not vector
    written = _one(word & 31) | _one(word >> 10 & 31) if loads else 0
    if not mode & 1:
        return Effects(written)
    scale = 2 + size if vector else (2, 2 if word >> 22 & 1 else 4, 3)[size]  # STGP: granules
    return _writing_back(word, written, signed(word >> 15, 7) << scale)


def _single(word: int, mentions: int) -> Effects:
    """Bits 29:28 = 11: "Load/store register", "Atomic memory operations"."""
    written, low, base = _loaded(word), word >> 10 & 3, word >> 5 & 31
    if word >> 24 & 1:
        return Effects(written)
    if word >> 21 & 1:
        if low == 0:  # LD64B and its like write eight
            return Effects(_many(word & 31, 8) | _one(word >> 16 & 31))
        if low == 2:
            return Effects(written)
        return Effects(written | 1 << base if word >> 11 & 1 else written)  # LDRAA, LDRAB
    return _writing_back(word, written, signed(word >> 12, 9)) if low & 1 else Effects(written)


_MEMORY = (_exclusive_and_structures, _literal_and_rest, _pair, _single)
