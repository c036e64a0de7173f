"""Counting by key in compiled functions: a hash table in two arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import njit


def table(entries: int = 1 << 16) -> np.ndarray[Any, Any]:
    """An empty table for up to `entries` keys (int64, two columns: count and key)."""
    return np.zeros((2 * entries, 2), np.int64)


@njit(nogil=True)
def count(table, key, amount=1):  # type: ignore[no-untyped-def]
    """Add `amount` to what `table` has for the integer `key`. Raises ValueError when it is full."""
    size = len(table)
    at = (key * 0x9E3779B97F4A7C1 ^ key >> 17) % size
    for _ in range(size):
        if table[at, 0] == 0:
            table[at, 1] = key
        if table[at, 1] == key:
            table[at, 0] += amount
            return
        at = at + 1 if at + 1 < size else 0
    raise ValueError("more different keys than the table has entries")


def merge(into: SimpleNamespace, other: SimpleNamespace) -> None:
    """Add the tables of one state to those of another: for an `Analysis.merge`."""
    for name, array in vars(other).items():
        for number, key in array[array[:, 0] > 0].tolist():
            count(getattr(into, name), key, number)


def rows(table: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """The (key, count) of a table, the greatest counts first."""
    found = table[table[:, 0] > 0]
    order = np.lexsort((found[:, 1], -found[:, 0]))
    return [(int(key), int(number)) for number, key in found[order].tolist()]
