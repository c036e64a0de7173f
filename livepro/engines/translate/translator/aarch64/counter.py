"""Where a block is counted, and how: outside of exclusive sequences, in dead registers if that can be."""

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.aarch64.encode import BASE, LINK, X0, X1
from livepro.engines.translate.translator.aarch64.facts import Exclusive, Facts, Kind
from livepro.engines.translate.translator.aarch64.machine import SPILL_PAIR
from livepro.engines.translate.translator.backend import Owed
from livepro.engines.translate.translator.emitted import Countdown, Emitted

BRK = encode.pack([encode.BRK])
SAVE_PAIR = encode.store_pair(X0, X1, BASE, SPILL_PAIR)
LOAD_PAIR = encode.load_pair(X0, X1, BASE, SPILL_PAIR)

NEAR = 1 << 15
"""Reach of ldr xt, [xn, #imm12 * 8]."""
IN_LOOKUP = -1
"""Where a block is counted that ends in an indirect branch, if it may be."""
INDIRECT = frozenset((Kind.RETURN, Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL))

Counter = tuple[int, tuple[int, ...], int]
"""Before which instruction to count (`IN_LOOKUP`: in that), registers that are free there, and before
which instruction these are the program's own again."""


class CounterEmitter:
    """Counts blocks; with a `countdown` each counter has the interval check."""

    def __init__(self, countdown: Countdown) -> None:
        self._budgeted = bool(countdown)

    def _count_all(self, emitted: Emitted, owed: Owed) -> None:
        for slot, length in owed:
            self._count(emitted, slot, length, ())
            if emitted.budget is not None:
                emitted.more_budgets += ((*emitted.budget, slot),)
                emitted.budget = None

    def _place_counter(self, facts_of: list[Facts]) -> Counter:
        """Where to count: outside of exclusive sequences, where registers are dead if possible.

        A register is dead where an instruction further on overwrites it before
        any reads it, and none in between can fault or be seen from outside.
        """
        last = len(facts_of) - 1
        kind = facts_of[last].kind
        exclusives = [index for index, facts in enumerate(facts_of) if facts.exclusive]
        if exclusives:
            first = exclusives[0]
            return (first + 1 if facts_of[first].exclusive is Exclusive.CLOSES else 0), (), 0
        if self._budgeted:  # before it has executed any of what would be too much
            return 0, (), 0
        if kind in INDIRECT:
            return IN_LOOKUP, (), 0
        dead = best = 0
        place = 0
        for index in range(last, -1, -1):
            facts = facts_of[index]
            if kind is Kind.CALL and index == last:
                dead = 1 << LINK
            else:
                dead = 0 if facts.may_fault else dead & ~facts.mentions | facts.kills
            if dead and dead.bit_count() >= min(best.bit_count(), 2):
                place, best = index, dead
        free = [register for register in range(31) if best >> register & 1 and register != BASE]
        if not free:
            return 0, (), 0
        clean = place
        wanted = sum(1 << register for register in free[:2])
        while wanted and clean < last:
            wanted &= ~facts_of[clean].kills
            clean += 1
        return place, tuple(free[:2]), last + 1 if wanted else clean

    def _count(self, emitted: Emitted, slot: int, length: int, free: tuple[int, ...]) -> None:
        """The counter itself, and the interval check if asked for."""
        cell = layout.COUNTERS + slot * 8
        needed = 1 if cell < NEAR else 2
        if len(free) >= needed:
            self._counting(emitted, cell, length, *free[:needed])
        elif needed == 1:
            self._spilled(emitted, X0, cell, length)
        elif free:
            other = X0 if free[0] != X0 else X1
            emitted.code.extend(encode.pack([encode.store(other, BASE, SPILL_PAIR)]))
            self._counting(emitted, cell, length, free[0], other)
            emitted.code.extend(encode.pack([encode.load(other, BASE, SPILL_PAIR)]))
        else:
            emitted.code.extend(encode.pack([SAVE_PAIR]))
            self._counting(emitted, cell, length, X0, X1)
            emitted.code.extend(encode.pack([LOAD_PAIR]))
        emitted.counted = len(emitted.code)

    def _spilled(self, emitted: Emitted, register: int, cell: int, length: int) -> None:
        emitted.code.extend(encode.pack([encode.store(register, BASE, SPILL_PAIR)]))
        self._counting(emitted, cell, length, register)
        emitted.code.extend(encode.pack([encode.load(register, BASE, SPILL_PAIR)]))

    def _counting(self, emitted: Emitted, cell: int, length: int, value: int, where: int = BASE) -> None:
        """Count with registers at hand: `where` is one to form the cell's address in, if it is far."""
        words = []
        if where != BASE:
            words.append(encode.add_immediate(where, BASE, cell >> 12, high=True))
            cell &= 0xFFF
        words.append(encode.load(value, where, cell))
        words.append(encode.add_immediate(value, value, 1))
        words.append(encode.store(value, where, cell))
        out = emitted.code
        emitted.tallied = len(out) + 4 * len(words)
        if self._budgeted:
            words.append(encode.load(value, BASE, layout.BUDGET))
            if length >> 12:
                words.append(encode.subtract_immediate(value, value, length >> 12, high=True))
            words.append(encode.subtract_immediate(value, value, length & 0xFFF))
            words.append(encode.store(value, BASE, layout.BUDGET))
            emitted.charged = len(out) + 4 * len(words)
            words.append(encode.branch_if_positive(value, 8))
            out += encode.pack(words)
            emitted.budget = (len(out), len(out) + 4)
            out += BRK
        else:
            out += encode.pack(words)

    @staticmethod
    def _cell(slot: int, length: int) -> tuple[int, ...]:
        cell = layout.COUNTERS + slot * 8
        return (cell, length, X0) if cell < NEAR else (cell, length, X0, X1)
