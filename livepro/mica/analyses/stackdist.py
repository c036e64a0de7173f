"""LRU stack distances of reads: how many other blocks have been read since a block was read before."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.pointers import borrowed
from livepro.events.spans.feeding import Slice
from livepro.events.spans.operand import WRITE, size_of, slot_of
from livepro.events.structures.recency import Recency, room, use
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts

BUCKETS = 19
FULL = 128
"""Distances that the full histogram tells apart."""
_REFERENCES, _COLD = range(2)


@njit(nogil=True, cache=True)
def consume(
    addresses, operands, begin, stop, shift,
    state, front, tree, bits, blocks, keys, values, totals, far, near,
):  # fmt: skip
    """Count distances: in `near` up to FULL, in `far` by their power of two if they are greater. Returns the
    operand to go on with, once there is room for more times and keys."""
    state, front, tree, bits = borrowed(state), borrowed(front), borrowed(tree), borrowed(bits)
    blocks, keys, values = borrowed(blocks), borrowed(keys), borrowed(values)
    totals, far, near = borrowed(totals), borrowed(far), borrowed(near)
    for o in range(begin, stop):
        if slot_of(operands[o]) >= WRITE:
            continue
        if not room(state, len(blocks), len(keys)):
            return o
        for block in range(addresses[o] >> shift, (addresses[o] + size_of(operands[o]) - 1 >> shift) + 1):
            totals[_REFERENCES] += 1
            distance = use(block, state, front, tree, bits, blocks, keys, values)
            if distance < 0:
                totals[_COLD] += 1
            elif distance < FULL:
                near[distance] += 1
            else:
                k = 7
                while k < BUCKETS - 1 and distance >> (k + 1):
                    k += 1
                far[k] += 1
    return stop


class StackDist(Analysis):
    """Values: references, cold ones, and those of distances below 2, 4, 8 ... 2**18, and beyond."""

    effort = 30

    def __init__(self, block: int) -> None:
        self._shift = block
        self._recency = Recency()
        self._totals = np.zeros(2, np.int64)
        self._far = np.zeros(BUCKETS, np.int64)
        self._near = np.zeros(FULL, np.int64)

    def see(self, part: Slice, facts: Facts) -> None:
        events = part.events
        at, stop = events.operands_at[part.begin], events.operands_at[part.end]
        while True:
            at = consume(
                *(events.addresses, events.operands, at, stop, self._shift),
                *(*self._recency.arrays(), self._totals, self._far, self._near),
            )
            if at == stop:
                return
            self._recency.grow()

    def values(self) -> list[int]:
        histogram = self._far.copy()
        for k in range(7):  # 0 and 1, 2 and 3, 4 to 7 ...
            histogram[k] = self._near[1 << k if k else 0 : 2 << k].sum()
        return [*self._totals.tolist(), *histogram.tolist()]

    def full_values(self) -> list[int]:
        """References, cold ones, and those of each distance below 128, and beyond."""
        return [*self._totals.tolist(), *self._near.tolist(), int(self._far.sum())]

    def next_interval(self) -> None:
        self._totals[:] = 0
        self._far[:] = 0
        self._near[:] = 0
