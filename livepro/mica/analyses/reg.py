"""Register traffic: operands, degree of use, distances between a register's write and its reads.

Ages count events. A value is used by every read before the next write; it counts when that write comes.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.analyses.itypes import grown
from livepro.mica.facts import Facts

AGES = (1, 2, 4, 8, 16, 32, 64)
MOST = 127
"""Ages and uses are counted up to this."""


@njit(nogil=True, cache=True)
def consume(
    instructions, begin, stop, counts_of, reads_at, writes_at, registers, state, totals, ages, uses, born
):
    now = state[0]
    for e in range(begin, stop):
        i = instructions[e]
        now += 1
        totals[0] += counts_of[i]
        middle = writes_at[i]
        for r in range(reads_at[i], middle):
            register = registers[r]
            age = now - born[register] if born[register] else 0
            ages[age if age < MOST else MOST] += 1
            uses[register, 0] += 1
            uses[register, 1] = 1
        for r in range(middle, reads_at[i + 1]):
            register = registers[r]
            if uses[register, 1]:
                totals[1] += 1
                totals[2] += uses[register, 0] if uses[register, 0] < MOST else MOST
            uses[register, 0] = 0
            uses[register, 1] = 1
            born[register] = now
    state[0] = now


class Reg(Analysis):
    """Values: operands, values that have ended, their uses, reads, and reads of an age of at most 1, 2, 4 ...
    64."""

    def __init__(self) -> None:
        self._state = np.zeros(1, np.int64)
        self._totals = np.zeros(3, np.int64)
        self._ages = np.zeros(MOST + 1, np.int64)
        self._uses = np.zeros((64, 2), np.int64)
        self._born = np.zeros(64, np.int64)

    def see(self, part: Slice, facts: Facts) -> None:
        self._uses = grown(self._uses, facts.registers_known)
        self._born = grown(self._born, facts.registers_known)
        consume(
            *(part.events.instructions, part.begin, part.end),
            *(facts.operands, facts.reads_at, facts.writes_at, facts.registers),
            *(self._state, self._totals, self._ages, self._uses, self._born),
        )

    def values(self) -> list[int]:
        upto = np.cumsum(self._ages)
        return [*self._totals.tolist(), int(upto[-1]), *(int(upto[age]) for age in AGES)]

    def next_interval(self) -> None:
        self._totals[:] = 0
        self._ages[:] = 0
