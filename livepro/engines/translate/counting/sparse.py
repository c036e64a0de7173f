"""Numbers by slot, of the few slots that have any: what an interval adds to tens of thousands of counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
Sparse = tuple[Array, Array]
"""Slots, in any order, and a number for each; several of the same slot add up."""


def total(parts: Sequence[Sparse]) -> Sparse:
    """The sum of several, in the order of slots, each of which is there once, if its number is not 0."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    slots = np.concatenate([slots for slots, _ in parts])
    order = np.argsort(slots, kind="stable")
    slots, numbers = slots[order], np.concatenate([numbers for _, numbers in parts])[order]
    first = np.flatnonzero(np.diff(slots, prepend=-1) != 0)
    sums = np.add.reduceat(numbers, first) if len(first) else numbers
    some = np.flatnonzero(sums != 0)  # several times as fast as without the comparison
    return slots[first[some]], sums[some]


def from_mapping(numbers: Mapping[int, int]) -> Sparse:
    """From numbers by slot."""
    size = len(numbers)
    return np.fromiter(numbers, np.int64, size), np.fromiter(numbers.values(), np.int64, size)
