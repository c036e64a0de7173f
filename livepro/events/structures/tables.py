"""Hash tables of compiled code: open addressing in arrays whose lengths are powers of two.

The loops of `footprint`, `ilp` and `ppm` never grow a table: they return where there might not be room for
one more event, and their caller doubles it. (The references of an array that a loop binds anew are counted in
every turn: 5 ns.)
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

EMPTY = -(1 << 63)
"""No key: no block of memory has this number."""
MOST_KEYS = 12288
"""Keys that one event may add: the largest XSAVE area, with AMX, has 11,008 bytes (SDM volume 1, 13.4)."""
MULTIPLIER = -7046029254386353131  # 2**64 / golden ratio, as a signed number (Knuth, TAOCP 3, 6.4)


@njit(nogil=True, cache=True, forceinline=True)
def find(keys, key):
    """Where `key` is, or where it would be put. (It becomes part of its caller: no array is handed over.)"""
    mask = len(keys) - 1
    at = (key * MULTIPLIER >> 29) & mask
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + 1) & mask
    return at


@njit(nogil=True, cache=True)
def full(entries, used):
    """Whether a table of so many entries, `used` of them with keys, may be more than half full after one more
    event. (It is told their number, not the table: handing over an array takes longer than this.)"""
    return 2 * (used + MOST_KEYS) >= entries


@njit(nogil=True, cache=True)
def doubled(keys, values):
    """Tables of twice the size with the same entries; `values` has a row for each key."""
    new_keys = np.full(2 * len(keys), EMPTY, np.int64)
    new_values = np.zeros((2 * len(keys), values.shape[1]), np.int64)
    for old in range(len(keys)):
        if keys[old] != EMPTY:
            at = find(new_keys, keys[old])
            new_keys[at] = keys[old]
            new_values[at] = values[old]
    return new_keys, new_values


def empty(columns: int, room: int = 1 << 15):
    """Keys and values of a table without entries."""
    return np.full(room, EMPTY, np.int64), np.zeros((room, columns), np.int64)


ROW_BITS = 3
"""A row of a table of `rows` has 2**3 numbers, the first is its key: one line of most caches."""


@njit(nogil=True, cache=True, forceinline=True)
def row_of(table, key):
    """Where the row of `key` begins, or the free one where it would be put."""
    mask = (len(table) >> ROW_BITS) - 1
    at = (key * MULTIPLIER >> 29) & mask
    while True:
        row = np.uint64(at << ROW_BITS)
        if table[row] == key or table[row] == EMPTY:
            return row
        at = (at + 1) & mask


@njit(nogil=True, cache=True)
def clear(table):
    """Forget all rows."""
    for at in range(0, len(table), 1 << ROW_BITS):
        table[at] = EMPTY
        for n in range(1, 1 << ROW_BITS):
            table[at + n] = 0


@njit(nogil=True, cache=True)
def more_rows(table):
    """A table of twice the size with the same rows."""
    out = np.empty(2 * len(table), np.int64)
    clear(out)
    for at in range(0, len(table), 1 << ROW_BITS):
        if table[at] != EMPTY:
            row = row_of(out, table[at])
            for n in range(1 << ROW_BITS):
                out[row + np.uint64(n)] = table[at + n]
    return out


def rows(room: int = 1 << 15):
    """A table of so many rows, all of them free: key and numbers are in one line of a cache."""
    table = np.empty(room << ROW_BITS, np.int64)
    clear(table)
    return table
