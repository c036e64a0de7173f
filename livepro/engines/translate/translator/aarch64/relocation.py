"""What stands for an instruction that cannot be copied as it is. Pure: words in, words out.

Registers are borrowed by spilling them to the thread's area. A `Sequence` says
which of its words does what the instruction does, and may fault as it would.
"""

from __future__ import annotations

from dataclasses import dataclass

from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.aarch64.encode import BASE, LINK, SP, X0, X1
from livepro.engines.translate.translator.aarch64.facts import Facts, Kind
from livepro.engines.translate.translator.aarch64.machine import OWN_BASE, SPILL_LENT, SPILL_PAIR, lent
from livepro.isa.access import ALL_64


@dataclass(frozen=True, slots=True)
class Sequence:
    """`faulting` is the index of the word that may fault while registers are borrowed: those
    that `machine.restore_spills` takes `borrowed` for. (None: no such word.)"""

    words: list[int]
    faulting: int | None = None
    borrowed: int = 0


def lending(facts: Facts) -> Sequence:
    """An instruction that mentions BASE: as it is, with the program's own value there and the
    area's address in a register that it does not mention."""
    register = lent(facts.mentions)
    words = [
        encode.store(register, BASE, SPILL_LENT),
        encode.move(register, BASE),
        encode.load(BASE, register, OWN_BASE),
        facts.word,
        encode.store(BASE, register, OWN_BASE),
        encode.move(BASE, register),
        encode.load(register, BASE, SPILL_LENT),
    ]
    return Sequence(words, 3, 1 + register)


def address(word: int, pc: int, at: int) -> Sequence:
    """ADR or ADRP of `pc`: the same address, put together from `at`."""
    register = word & 31
    immediate = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
    immediate -= (immediate & 0x10_0000) << 1
    value = (pc & -0x1000) + (immediate << 12) if word >> 31 else pc + immediate
    value &= ALL_64
    if register == SP:  # here: the zero register
        return Sequence([encode.NOP])
    if register == BASE:
        words = [encode.store(X0, BASE, SPILL_LENT), *encode.address(X0, at + 4, value)]
        return Sequence([*words, encode.store(X0, BASE, OWN_BASE), encode.load(X0, BASE, SPILL_LENT)])
    return Sequence(encode.address(register, at, value))


# ldr, ldrsw, prfm with a register as base and no offset, by bits 31:30; of vectors: s, d, q.
GENERAL = (0xB9400000, 0xF9400000, 0xB9800000, 0xF9800000)
VECTOR = (0xBD400000, 0xFD400000, 0x3DC00000)


def literal(word: int, pc: int, at: int) -> Sequence:
    """A pc-relative load or prefetch: the address in a register, then the same access."""
    register, vector, size = word & 31, word >> 26 & 1, word >> 30
    distance = word >> 5 & 0x7FFFF
    value = pc + (distance - ((distance & 0x40000) << 1)) * 4 & ALL_64
    access = (VECTOR if vector else GENERAL)[size] | register
    loads = not vector and size != 3  # a general register
    if loads and register not in (BASE, SP):
        return Sequence([*encode.address(register, at, value), access | register << 5])
    words = [encode.store(X0, BASE, SPILL_LENT), *encode.address(X0, at + 4, value)]
    faulting = len(words)
    if loads and register == BASE:
        words += [access & ~31 | X0 | X0 << 5, encode.store(X0, BASE, OWN_BASE)]
    else:
        words.append(access | X0 << 5)
    return Sequence([*words, encode.load(X0, BASE, SPILL_LENT)], faulting, 1 + X0)


def branch(word: int) -> tuple[list[int], list[int]]:
    """A conditional branch as words before a B to its target, and words behind that B.

    It is inverted over the B, which reaches further and may be patched.
    (Conditions that cannot be inverted: around it.)
    """
    top = word >> 24 & 0x7F
    if top == 0x54 and word & 14 != 14:  # B.cond, BC.cond
        return [(word & 0xFF00001F ^ 1) | 2 << 5], []
    if top in (0x34, 0x35, 0x36, 0x37):  # CBZ, CBNZ, TBZ, TBNZ
        inverted = (word & (0xFFF8001F if top >= 0x36 else 0xFF00001F)) ^ 1 << 24
        if word & 31 != BASE:
            return [inverted | 2 << 5], []
        restore = encode.load(X0, BASE, SPILL_LENT)
        words = [encode.store(X0, BASE, SPILL_LENT), encode.load(X0, BASE, OWN_BASE)]
        return [*words, inverted & ~31 | X0 | 3 << 5, restore], [restore]
    # B.AL, and FEAT_CMPBR's compare-and-branch on two registers or a constant.
    return [word & (0xFF00001F if top == 0x54 else 0xFFFFC01F) | 2 << 5, encode.branch(8)], []


def _fetch(register: int, source: int, *, dirty: bool) -> list[int]:
    """Put the program's register `source` into x0 or x1, whose own values are spilled; `dirty`:
    and no longer in them."""
    if source == BASE:
        return [encode.load(register, BASE, OWN_BASE)]
    if source in (X0, X1):
        if source == register and not dirty:
            return []
        return [encode.load(register, BASE, SPILL_PAIR + 8 * source)]
    return [encode.move(register, source)]


def target(facts: Facts, *, dirty: bool) -> Sequence:
    """Bring the target of an indirect branch into x0; x0 and x1 are spilled, and hold other
    things if `dirty`.

    BRAA, BLRAA, RETAA and their like authenticate it: AUTIA, AUTIB, AUTIZA or AUTIZB in x0,
    which faults or leaves an address that will.
    """
    word = facts.word
    returns = facts.kind is Kind.RETURN
    if not word >> 10 & 63:
        return Sequence(_fetch(X0, word >> 5 & 31, dirty=dirty))
    key = (word >> 10 & 1) << 10  # 0 A, 1 B
    words = _fetch(X0, LINK if returns else word >> 5 & 31, dirty=dirty)
    if not returns and not word >> 24 & 1:
        words.append(0xDAC133E0 | key | X0)
        return Sequence(words, len(words) - 1)
    modifier = SP if returns else word & 31
    if modifier in (X0, X1, BASE):
        words += _fetch(X1, modifier, dirty=True)
        modifier = X1
    words.append(0xDAC11000 | key | modifier << 5 | X0)
    return Sequence(words, len(words) - 1)
