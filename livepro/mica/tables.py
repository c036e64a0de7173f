"""Hash tables of compiled code: open addressing in arrays whose lengths are powers of two."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

EMPTY = -(1 << 63)
"""No key: no block of memory has this number."""
_MULTIPLIER = -7046029254386353131  # 2**64 / golden ratio, as a signed number (Knuth, TAOCP 3, 6.4)


@njit(nogil=True, cache=True)
def find(keys, key):
    """Where `key` is, or where it would be put."""
    mask = len(keys) - 1
    at = (key * _MULTIPLIER >> 29) & mask
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + 1) & mask
    return at


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


def empty(columns: int, room: int = 1 << 12):
    """Keys and values of a table without entries."""
    return np.full(room, EMPTY, np.int64), np.zeros((room, columns), np.int64)
