"""Addresses of operands: what they are computed from, and the instructions that do."""

from __future__ import annotations

from typing import NamedTuple

from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.aarch64.encode import BASE, SP
from livepro.engines.translate.translator.aarch64.machine import OWN_BASE
from livepro.isa.aarch64.accesses import Operand
from livepro.isa.aarch64.addressing.zeroing import block_size
from livepro.isa.access import Access, Pattern

FARTHEST = (1 << 24) - (1 << 17)
"""By how much a register may have moved, for an address to be told in terms of what it was: two additions
reach 24 bits, and operands have offsets of their own."""


class Place(NamedTuple):
    """An address to be computed for `word` of a record: what an operand says (`livepro.isa.aarch64.accesses`;
    `base` -1: `offset` is the address). `size` is to stand in the word behind, if it is not 0."""

    word: int
    base: int
    offset: int
    scaled: int
    extend: int
    shift: int
    mask: int
    size: int

    @property
    def registers(self) -> int:
        """Mask of the registers that it needs; bit 31: the stack pointer."""
        base = 1 << self.base if self.base >= 0 else 0
        return base | 1 << self.scaled if self.scaled >= 0 else base  # they may be the same one


def places_of(accesses: tuple[Access, ...], word: int) -> list[Place] | None:
    """What to compute before an instruction whose accesses have words from `word` on; None if that takes the
    tracer (vectors of SVE, with their predicates)."""
    found: list[Place] = []
    for access in accesses:
        where = access.where
        if not isinstance(where, Operand) or access.pattern not in (Pattern.ONE, Pattern.SIZED):
            return None
        base, offset, align, size = where.base, where.offset, where.align, 0
        if access.pattern is Pattern.SIZED:  # DC ZVA, whose register 31 is XZR
            align = size = block_size()
            base = -1 if base == SP else base
        scaled = -1 if where.scaled == SP else where.scaled  # XZR
        found.append(Place(word, base, offset, scaled, where.extend, where.shift, where.mask & -align, size))
        word += access.words
    return found


def shifted(place: Place, moved: dict[int, int]) -> Place | None:
    """A place in terms of the registers at the block's start, since when some have `moved`; None where that
    cannot be said."""
    more = moved.get(place.base, 0)
    if place.scaled >= 0 and (by := moved.get(place.scaled, 0)):
        if place.extend & 3 != 3:  # 32 bits of it
            return None
        more += by << place.shift
    return place._replace(offset=place.offset + more) if abs(more) <= FARTHEST else None


def compute(place: Place, to: int, other: int) -> list[int]:
    """Put a place's address into a register; `other` is used up where the lent register is `scaled`."""
    if place.base < 0:
        return encode.constant(to, place.offset)
    source, words = place.base, []
    if source == BASE:
        words.append(encode.load(to, BASE, OWN_BASE))
        source = to
    words += _add(to, source, place.offset)
    if place.scaled >= 0:
        scaled = place.scaled
        if scaled == BASE:
            words.append(encode.load(other, BASE, OWN_BASE))
            scaled = other
        words.append(encode.add_extended(to, to, scaled, place.extend, place.shift))
    return [*words, encode.keep_bits(to, to, place.mask)]


def _add(to: int, source: int, amount: int) -> list[int]:
    """to = source + amount, of up to 24 bits; the source may be the stack pointer."""
    operation = encode.add_immediate if amount >= 0 else encode.subtract_immediate
    amount = abs(amount)
    words = [operation(to, source, amount & 0xFFF)]
    if amount >> 12:
        words.append(operation(to, to, amount >> 12, high=True))
    return words
