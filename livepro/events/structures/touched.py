"""Which units of memory each instruction has touched: a bit for each of 64 units that are side by side.

A table with open addressing of rows of four numbers: which 64 units, the instruction's number and one (0: the
row is free), the bits, and nothing. It has at most `MOST` rows: beyond that it is said that some were lost.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.structures.tables import MULTIPLIER

U = np.uint64
ROW_BITS = 2
GROUP, INSTRUCTION, BITS = range(3)
USED, LOST = range(2)
"""Of the state: rows in use, and whether something found no room."""
UNIT_BITS = 6
MOST = 1 << 21
"""Rows: 64 MiB."""
_SPARE = 256  # rows that one access may take: 12,288 units of one byte, see `tables.MOST_KEYS`
_OTHER = 0x2545F4914F6CDD1D  # an odd number (Vigna, xorshift64*), for the instruction's part of a row's place


@njit(nogil=True, cache=True, forceinline=True)
def crowded(length, used):
    """Whether a table of so many numbers, `used` of its rows taken, should grow before another access."""
    rows = length >> ROW_BITS
    return rows < MOST and 2 * (used + _SPARE) >= rows


@njit(nogil=True, cache=True, forceinline=True)
def place(table, group, instruction):
    """The row of a group and an instruction, or the free one where it would be put."""
    mask = (len(table) >> ROW_BITS) - 1
    at = (group * MULTIPLIER + instruction * _OTHER >> 29) & mask
    while True:
        row = U(at << ROW_BITS)
        owner = table[row + U(INSTRUCTION)]
        if owner == 0 or (owner == instruction + 1 and table[row] == group):
            return row
        at = (at + 1) & mask


@njit(nogil=True, cache=True, forceinline=True)
def touch(instruction, unit, table, state):
    """Take note of a unit. Whether the instruction has not touched it before, as far as is known."""
    group, bit = unit >> UNIT_BITS, 1 << (unit & (1 << UNIT_BITS) - 1)
    row = place(table, group, instruction)
    if table[row + U(INSTRUCTION)] == 0:
        if 2 * state[USED] >= len(table) >> ROW_BITS:
            state[LOST] = 1
            return True
        state[USED] += 1
        table[row], table[row + U(INSTRUCTION)] = group, instruction + 1
    known = table[row + U(BITS)]
    table[row + U(BITS)] = known | bit
    return known & bit == 0


@njit(nogil=True, cache=True)
def moved(table, into):
    """Put all rows of a table into a larger one, which is empty."""
    for at in range(0, len(table), 1 << ROW_BITS):
        if table[at + INSTRUCTION]:
            row = place(into, table[at + GROUP], table[at + INSTRUCTION] - 1)
            for n in range(BITS + 1):
                into[row + U(n)] = table[at + n]


class Touched:
    """Such a table, which grows."""

    def __init__(self) -> None:
        self._table = np.zeros(1 << 10 << ROW_BITS, np.int64)
        self._state = np.zeros(2, np.int64)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The table and the state, as `touch` takes them."""
        return self._table, self._state

    def grow(self) -> bool:
        """Make room where there may not be enough. Whether there was something to do."""
        if not crowded(len(self._table), self._state[USED]):
            return False
        larger = np.zeros(2 * len(self._table), np.int64)
        moved(self._table, larger)
        self._table = larger
        return True

    @property
    def rows(self) -> np.ndarray | None:
        """Groups, instructions and bits, a row for each; None if some were lost."""
        if self._state[LOST]:
            return None
        rows = self._table.reshape(-1, 1 << ROW_BITS)
        found = rows[rows[:, INSTRUCTION] > 0, : BITS + 1].copy()
        found[:, INSTRUCTION] -= 1
        return found


def distinct(rows: np.ndarray, owners: np.ndarray, shift: int, many: int) -> np.ndarray:
    """How many distinct pieces of 2**`shift` units each of `many` owners has touched; `owners` has that of
    the instruction of each of a table's `rows`."""
    groups, bits = rows[:, GROUP], rows[:, BITS].astype(np.uint64)
    if shift >= UNIT_BITS:
        groups, bits = groups >> (shift - UNIT_BITS), np.ones(len(rows), np.uint64)
    else:
        for step in range(shift):
            bits |= bits >> U(1 << step)
        bits &= U(sum(1 << n for n in range(0, 1 << UNIT_BITS, 1 << shift)))  # of each piece the first one's
    out = np.zeros(many, np.int64)
    if len(owners):
        order = np.lexsort((groups, owners))
        owners, groups, bits = owners[order], groups[order], bits[order]
        begins = np.flatnonzero(np.append(True, (np.diff(owners) != 0) | (np.diff(groups) != 0)))
        np.add.at(out, owners[begins], _ones(np.bitwise_or.reduceat(bits, begins)))
    return out


def _ones(words: np.ndarray) -> np.ndarray:
    """Bits that are set in words of 64 (H. S. Warren, Hacker's Delight, figure 5-2)."""
    words = words - (words >> U(1) & U(0x5555555555555555))
    words = (words & U(0x3333333333333333)) + (words >> U(2) & U(0x3333333333333333))
    words = (words + (words >> U(4))) & U(0x0F0F0F0F0F0F0F0F)
    return (words * U(0x0101010101010101) >> U(56)).astype(np.int64)
