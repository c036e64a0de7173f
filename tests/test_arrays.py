"""What NumPy has not, beside what it has."""

from __future__ import annotations

import numpy as np
import pytest

from livepro.model.arrays import distinct, numbered, ranges


@pytest.mark.parametrize("limit", [50, 1 << 40])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_what_is_distinct(count: int, limit: int) -> None:
    """Whether it is sorted or marked."""
    values = np.random.default_rng(count).integers(0, 50, count)
    expected, which = np.unique(values, return_inverse=True)
    assert distinct(values).tolist() == expected.tolist()
    found, of = numbered(values, limit)
    assert (found.tolist(), of.tolist()) == (expected.tolist(), which.tolist())


@pytest.mark.parametrize(
    ("at", "lengths", "expected"), [([], [], []), ([5, 0, 9], [2, 0, 3], [5, 6, 9, 10, 11])]
)
def test_ranges_one_after_the_other(at: list[int], lengths: list[int], expected: list[int]) -> None:
    assert ranges(np.array(at, np.int64), np.array(lengths, np.int64)).tolist() == expected
