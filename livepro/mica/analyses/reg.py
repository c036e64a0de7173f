"""Register traffic: operands, degree of use, distances between a register's write and its reads.

Ages count events. A value is used by every read before the next write; it counts when that write comes.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.spans.column import grown
from livepro.events.spans.feeding import Slice
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts

AGES = (1, 2, 4, 8, 16, 32, 64)
U = np.uint64  # an unsigned index needs no test for being negative
_0, _1 = U(0), U(1)
MOST = 127
"""Ages and uses are counted up to this."""


@njit(nogil=True, cache=True)
def consume(
    begins, ends, begin, stop, counts_of, reads_at, writes_at, registers, state, totals, ages, uses, born
):
    now, operands, ended, used = state[0], totals[0], totals[1], totals[2]
    for s in range(U(begin), U(stop)):
        i, end = U(begins[s]), U(ends[s])
        r = U(reads_at[i])
        while i < end:
            now += 1
            operands += counts_of[i]
            middle = U(writes_at[i])
            i += _1
            while r < middle:
                register = U(registers[r])
                r += _1
                written = born[register]
                age = now - written if written else 0
                ages[U(min(age, MOST))] += 1
                uses[register, _0] += 1
                uses[register, _1] = 1
            last = U(reads_at[i])
            while r < last:
                register = U(registers[r])
                r += _1
                if uses[register, _1]:
                    ended += 1
                    used += min(uses[register, _0], MOST)
                uses[register, _0] = 0
                uses[register, _1] = 1
                born[register] = now
    state[0], totals[0], totals[1], totals[2] = now, operands, ended, used


class Reg(Analysis):
    """Values: operands, values that have ended, their uses, reads, and reads of an age of at most 1, 2, 4 ...
    64."""

    effort = 15

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
            *(part.events.begins, part.events.ends, part.begin, part.end),
            *(facts.operands, facts.reads_at, facts.writes_at, facts.registers),
            *(self._state, self._totals, self._ages, self._uses, self._born),
        )

    def values(self) -> list[int]:
        upto = np.cumsum(self._ages)
        return [*self._totals.tolist(), int(upto[-1]), *(int(upto[age]) for age in AGES)]

    def next_interval(self) -> None:
        self._totals[:] = 0
        self._ages[:] = 0
