"""Emits what records a block's execution and the addresses that it accesses.

See its x86-64 namesake. A block's record is begun at the block's start; in a block that closes an exclusive
sequence which was begun elsewhere it is behind the store, if all that the block accesses so far is what the
store does: nothing is to be stored in between (see `emitter`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.aarch64.counter import BRK
from livepro.engines.translate.translator.aarch64.encode import BASE
from livepro.engines.translate.translator.aarch64.events.addressing import (
    Place,
    compute,
    places_of,
    shifted,
)
from livepro.engines.translate.translator.aarch64.events.effects import effects_of
from livepro.engines.translate.translator.aarch64.facts import Exclusive, Facts, Kind
from livepro.engines.translate.translator.aarch64.machine import SPILL_PAIR
from livepro.engines.translate.translator.emitted import Emitted
from livepro.engines.translate.translator.source import SourceBlock

_BORROWED = ((1 << 31) - 1) & ~(1 << BASE)
"""The registers of which two are borrowed."""
_FEWEST = 2
_NEAREST = -0x100  # reach of stur


class Plan(NamedTuple):
    """What is recorded of a block: its number, the words of its record, before which instruction it is begun
    (`at`), with which places, and places computed before each instruction (by index); `stepped` are
    instructions whose words the tracer fills in."""

    number: int
    words: int
    at: int
    first: tuple[Place, ...]
    later: dict[int, list[Place]]
    stepped: frozenset[int]

    @property
    def places(self) -> set[int]:
        """The instructions that something is emitted for."""
        return {*self.later, *self.stepped}

    # -- emission

    def begin(self, emitted: Emitted) -> tuple[int, int]:
        """Begin the record. Returns two registers that have been borrowed for that, and may be used;
        `give_back` ends it."""
        out = emitted.code
        value, pointer = _two(self.first)
        record = _lead_to_record(pointer)
        words = [encode.store_pair(value, pointer, BASE, SPILL_PAIR), *record]
        words += [*encode.constant(value, self.number), encode.store(value, pointer, 0)]
        for place in self.first:
            words += compute(place, value, pointer)
            if place.scaled == BASE:
                words += record
            words += _put(place, value, pointer, 0)
        words.append(encode.subtract(pointer, pointer, BASE))
        size = 8 * self.words
        if size >> 12:
            words.append(encode.add_immediate(pointer, pointer, size >> 12, high=True))
        words.append(encode.add_immediate(pointer, pointer, size & 0xFFF))
        words.append(encode.store(pointer, BASE, layout.RECORD))
        out += encode.pack(words)
        emitted.recorded = len(out)
        # Bits 16 to 23 are 0 where the next record would begin behind the chunk (`layout.RECORDS_END`).
        out += encode.pack([encode.bits(value, pointer, 16, 8), encode.branch_if_not_zero(value, 8)])
        emitted.full = (len(out), len(out) + len(BRK))
        out += BRK
        return value, pointer

    @staticmethod
    def give_back(value: int, pointer: int) -> int:
        """The instruction that gives back what was borrowed."""
        return encode.load_pair(value, pointer, BASE, SPILL_PAIR)

    def before(self, emitted: Emitted, index: int) -> None:
        """Record what is known in front of instruction `index`, and not when the record was begun."""
        places = self.later.get(index)
        if not places:
            return
        value, pointer = _two(places)
        words = [encode.store_pair(value, pointer, BASE, SPILL_PAIR)]
        for place in places:
            words += compute(place, value, pointer) + _lead_to_record(pointer)
            words += _put(place, value, pointer, self.words)
        emitted.code += encode.pack([*words, self.give_back(value, pointer)])


class Recording:
    """Plans and emits the records of blocks, which get their numbers from `blocks`."""

    def __init__(self, blocks: StreamBlocks, *, every: bool = True) -> None:
        self.blocks = blocks
        self.every = every
        """Whether blocks are recorded at all (only those with repeated instructions may be wanted, which
        there are none of)."""

    def wants(self, block: SourceBlock) -> bool:
        """See `Records`."""
        return self.every

    def knows(self, start: int, end: int) -> None:
        """See `Records`."""

    def plan(self, block: SourceBlock) -> Plan | None:
        """What is recorded of a block, if anything is."""
        if not self.wants(block):
            return None
        flows = [facts.flow for facts in block.facts]
        known = self.blocks.block(block.pc, block.code, block.steps(), flows, block.target)
        at = _begins_at(block.facts, [bool(accesses) for accesses in known.accesses])
        first: list[Place] = []
        later: dict[int, list[Place]] = {}
        stepped = set()
        moved: dict[int, int] = {}
        needed = lost = 0  # registers that the first places need; those of unknown values
        word = 1
        for index, accesses in enumerate(known.accesses):
            facts: Facts = block.facts[index]
            if index == at:
                moved, lost = {}, 0  # from here on
            places = None if facts.kind is Kind.NATIVE and accesses else places_of(accesses, word)
            word += sum(access.words for access in accesses)
            if places is None:
                stepped.add(index)
            for place in places or ():
                if index < at:  # computed behind the instruction, which leaves what it takes
                    told: Place | None = place
                else:
                    told = None if place.registers & lost else shifted(place, moved)
                if told is not None and _free(needed | told.registers):
                    first.append(told)
                    needed |= told.registers
                else:
                    later.setdefault(index, []).append(place)
            effects = effects_of(facts)
            lost |= effects.written
            if effects.moved >= 0:
                moved[effects.moved] = moved.get(effects.moved, 0) + effects.by
        return Plan(known.number, word, at, tuple(first), later, frozenset(stepped))


def _begins_at(facts_of: list[Facts], accesses: list[bool]) -> int:
    """Before which instruction a block's record is begun."""
    for index, facts in enumerate(facts_of):
        if facts.exclusive:
            closes = facts.exclusive is Exclusive.CLOSES and facts.kind is Kind.PLAIN
            base = facts.word >> 5 & 31
            kept = not effects_of(facts).written >> base & 1
            return index + 1 if closes and kept and not any(accesses[:index]) else 0
    return 0


def _free(needed: int) -> bool:
    """Whether there are registers to borrow where some (a mask) are needed."""
    return (_BORROWED & ~needed).bit_count() >= _FEWEST


def _lead_to_record(pointer: int) -> list[int]:
    """Let a register lead to where the next record begins."""
    return [encode.load(pointer, BASE, layout.RECORD), encode.add(pointer, pointer, BASE)]


def _two(places: Iterable[Place]) -> tuple[int, int]:
    """Two registers that these places do not need."""
    free = _BORROWED
    for place in places:
        free &= ~place.registers
    one = free & -free
    other = free ^ one
    return one.bit_length() - 1, (other & -other).bit_length() - 1


def _put(place: Place, value: int, pointer: int, behind: int) -> list[int]:
    """Store a place's address, and its size; the pointer leads so many words behind the record's start."""
    at, words = 8 * (place.word - behind), []
    if at < _NEAREST:  # (the pointer is led to the record anew for the next place)
        words.append(encode.subtract_immediate(pointer, pointer, -at & 0xFFF))
        if -at >> 12:
            words.append(encode.subtract_immediate(pointer, pointer, -at >> 12, high=True))
        at = 0
    put = encode.store if at >= 0 else encode.store_unscaled
    words.append(put(value, pointer, at))
    if place.size:
        words += [*encode.constant(value, place.size), put(value, pointer, at + 8)]
    return words
