"""Tables of compiled loops against dictionaries, while they grow."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from numba import njit

from livepro.events.structures import tables
from livepro.events.structures.bits import length_of


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_a_dictionary(seed: int) -> None:
    generator = random.Random(seed)
    table, known = tables.rows(64), {}
    for n in range(3000):
        key = generator.choice((generator.randrange(-50, 50), generator.randrange(-(1 << 62), 1 << 62)))
        row = tables.row_of(table, key)
        assert (table[row] == key) == (key in known)
        assert table[row + np.uint64(1)] == known.get(key, 0)
        table[row], table[row + np.uint64(1)] = key, n
        known[key] = n
        if 2 * len(known) > len(table) >> tables.ROW_BITS:
            table = tables.more_rows(table)
    for key, value in known.items():
        assert table[tables.row_of(table, key) + np.uint64(1)] == value
    tables.clear(table)
    assert all(table[tables.row_of(table, key)] == tables.EMPTY for key in known)


@pytest.mark.parametrize("seed", range(4))
def test_keys_and_values_are_a_dictionary(seed: int) -> None:
    generator = random.Random(seed)
    (keys, values), known = tables.empty(2, 64), {}
    for n in range(3000):
        key = generator.choice((generator.randrange(-50, 50), generator.randrange(-(1 << 62), 1 << 62)))
        at = tables.find(keys, key)
        assert (keys[at] == key) == (key in known)
        keys[at], values[at] = key, (n, -n)
        known[key] = n
        if 2 * len(known) > len(keys):
            keys, values = tables.doubled(keys, values)
    for key, value in known.items():
        assert values[tables.find(keys, key)].tolist() == [value, -value]


@njit
def length(number):  # type: ignore[no-untyped-def]
    return length_of(number)


def test_lengths_of_numbers_in_bits() -> None:
    for n in range(63):
        assert length(1 << n) == n + 1
        assert length((1 << n) - 1) == n
    assert length(-1) == length(-(1 << 63)) == 64
