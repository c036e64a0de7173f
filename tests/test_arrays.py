"""What NumPy has not, beside what it has."""

from __future__ import annotations

import numpy as np
import pytest

from livepro.model.arrays import distinct, numbered


@pytest.mark.parametrize("limit", [50, 1 << 40])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_what_is_distinct(count: int, limit: int) -> None:
    """Whether it is sorted or marked."""
    values = np.random.default_rng(count).integers(0, 50, count)
    expected, which = np.unique(values, return_inverse=True)
    assert distinct(values).tolist() == expected.tolist()
    found, of = numbered(values, limit)
    assert (found.tolist(), of.tolist()) == (expected.tolist(), which.tolist())
