"""What NumPy has not, or not without loading much for it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Integer = TypeVar("_Integer", bound=np.integer[Any])
_FAR = 1 << 24  # bytes that may be spent on what is faster than to sort


def distinct(values: npt.NDArray[_Integer]) -> npt.NDArray[_Integer]:
    """The distinct values of an array of integers, sorted: np.unique without numpy.ma, the loading of
    which it asks for."""
    ordered = np.sort(values)
    found: npt.NDArray[_Integer] = ordered[np.diff(ordered, prepend=~ordered[:1]) != 0]
    return found


def numbered(
    values: npt.NDArray[np.int64], limit: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct ones of `values`, ascending, and which of these each is (int64, from 0 on). All are at
    least 0, and below `limit`."""
    if limit > _FAR:
        distinct, which = np.unique(values, return_inverse=True)
        return distinct, which
    there = np.zeros(limit, bool)
    there[values] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[values]


def ranges(at: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The indices from `at[i]` on, `lengths[i]` of them, for all i one after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.repeat(at - ends + lengths, lengths) + np.arange(int(ends[-1]) if len(ends) else 0)
