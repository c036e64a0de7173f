"""LRU stack distances of reads: how many other blocks have been read since a block was read before.

The blocks read last are in a short list, most recent first; the older ones have a time each, when they left
that list, and a Fenwick tree over times counts those that left later. So a distance costs at most the length
of the list and the logarithm of the number of blocks.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.facts import Facts
from livepro.mica.flattening import WRITE
from livepro.mica.tables import EMPTY, doubled, empty, find

BUCKETS = 19
FULL = 128
"""Distances that the full histogram tells apart."""
FRONT = 16
"""Length of the list of the blocks read last."""
_LISTED, _TIME, _STORED, _KEYS, _REFERENCES, _COLD = range(6)


@njit(nogil=True, cache=True)
def add(tree, at, amount):
    """Add to a Fenwick tree's entry `at` (from 1)."""
    while at < len(tree):
        tree[at] += amount
        at += at & -at


@njit(nogil=True, cache=True)
def upto(tree, at):
    """The sum of a Fenwick tree's entries up to `at`."""
    total = 0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@njit(nogil=True, cache=True)
def renumbered(tree, blocks, keys, values, state):
    """Times without gaps, in the same order: `blocks` is by time, EMPTY where none is any longer."""
    live = 0
    for time in range(1, state[_TIME] + 1):
        if blocks[time] != EMPTY:
            live += 1
    length = len(blocks)
    while live * 2 + 2 > length:
        length *= 2
    new_blocks = np.full(length, EMPTY, np.int64)
    new_tree = np.zeros(length, np.int64)
    now = 0
    for time in range(1, state[_TIME] + 1):
        if blocks[time] != EMPTY:
            now += 1
            new_blocks[now] = blocks[time]
            values[find(keys, blocks[time]), 0] = now
    for at in range(1, length):  # each entry is 1 up to `now`
        low = at - (at & -at)
        new_tree[at] = max(0, min(at, now) - low)
    state[_TIME] = now
    return new_tree, new_blocks


@njit(nogil=True, cache=True)
def consume(
    operands_at, addresses, sizes, slots, begin, stop, shift,
    state, front, tree, blocks, keys, values, histogram, full,
):  # fmt: skip
    for o in range(operands_at[begin], operands_at[stop]):
        if slots[o] == WRITE:
            continue
        for block in range(addresses[o] >> shift, (addresses[o] + sizes[o] - 1 >> shift) + 1):
            state[_REFERENCES] += 1
            listed = state[_LISTED]
            place = 0
            while place < listed and front[place] != block:
                place += 1
            distance = place
            if place == listed:
                at = find(keys, block)
                time = values[at, 0] if keys[at] == block else 0
                if time == 0:
                    distance = -1
                else:
                    distance = listed + state[_STORED] - upto(tree, time)
                    add(tree, time, -1)
                    blocks[time] = EMPTY
                    values[at, 0] = 0
                    state[_STORED] -= 1
                if listed < FRONT:
                    state[_LISTED] += 1
                else:  # the last of the list becomes the most recent of the others
                    place = listed - 1
                    leaving = front[place]
                    if state[_TIME] + 1 >= len(blocks):
                        tree, blocks = renumbered(tree, blocks, keys, values, state)
                    state[_TIME] += 1
                    state[_STORED] += 1
                    time = state[_TIME]
                    add(tree, time, 1)
                    blocks[time] = leaving
                    at = find(keys, leaving)
                    if keys[at] != leaving:
                        if 2 * state[_KEYS] >= len(keys):
                            keys, values = doubled(keys, values)
                            at = find(keys, leaving)
                        keys[at] = leaving
                        state[_KEYS] += 1
                    values[at, 0] = time
            while place > 0:
                front[place] = front[place - 1]
                place -= 1
            front[0] = block
            if distance < 0:
                state[_COLD] += 1
            else:
                full[distance if distance < FULL else FULL] += 1
                k = 0
                while k < BUCKETS - 1 and distance >> (k + 1):
                    k += 1
                histogram[k] += 1
    return tree, blocks, keys, values


class StackDist(Analysis):
    """Values: references, cold ones, and those of distances below 2, 4, 8 ... 2**18, and beyond."""

    def __init__(self, block: int) -> None:
        self._shift = block
        self._state = np.zeros(6, np.int64)
        self._front = np.zeros(FRONT, np.int64)
        self._arrays = (np.zeros(1024, np.int64), np.full(1024, EMPTY, np.int64), *empty(1))
        self._histogram = np.zeros(BUCKETS, np.int64)
        self._full = np.zeros(FULL + 1, np.int64)

    def see(self, part: Slice, facts: Facts) -> None:
        events = part.events
        self._arrays = consume(
            *(events.operands_at, events.addresses, events.sizes, events.slots, part.begin, part.end),
            *(self._shift, self._state, self._front, *self._arrays, self._histogram, self._full),
        )

    def values(self) -> list[int]:
        return [*self._state[_REFERENCES:].tolist(), *self._histogram.tolist()]

    def full_values(self) -> list[int]:
        """References, cold ones, and those of each distance below 128, and beyond."""
        return [*self._state[_REFERENCES:].tolist(), *self._full.tolist()]

    def next_interval(self) -> None:
        self._state[_REFERENCES:] = 0
        self._histogram[:] = 0
        self._full[:] = 0
