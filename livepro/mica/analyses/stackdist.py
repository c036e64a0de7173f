"""LRU stack distances of reads: how many other blocks have been read since a block was read before.

The blocks read last are in a short list, most recent first; the older ones have a time each, when they left
that list. A bit for each time says whether it still is some block's; a Fenwick tree over words of bits
counts those of the words that are full of times. So a distance costs at most the length of the list and the
logarithm of the number of blocks.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.spans.feeding import Slice
from livepro.events.spans.operand import WRITE, size_of, slot_of
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts
from livepro.mica.tables import EMPTY, MOST_KEYS, doubled, empty, find, full

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
def ones(word):
    """The number of bits set of 32 (H. S. Warren, Hacker's Delight, figure 5-2)."""
    word -= word >> 1 & 0x55555555
    word = (word & 0x33333333) + (word >> 2 & 0x33333333)
    return ((word + (word >> 4) & 0x0F0F0F0F) * 0x01010101 & 0xFFFFFFFF) >> 24


@njit(nogil=True, cache=True)
def renumbered(tree, bits, blocks, keys, values, state):
    """Times without gaps, in the same order: `blocks` is by time, EMPTY where none is any longer."""
    live = 0
    for time in range(1, state[_TIME] + 1):
        if blocks[time] != EMPTY:
            live += 1
    length = len(blocks)
    while (live + MOST_KEYS) * 2 > length:
        length *= 2
    new_blocks = np.full(length, EMPTY, np.int64)
    new_bits = np.zeros(length >> 5, np.int64)
    new_tree = np.zeros((length >> 5) + 1, np.int64)
    now = 0
    for time in range(1, state[_TIME] + 1):
        if blocks[time] != EMPTY:
            now += 1
            new_blocks[now] = blocks[time]
            new_bits[now >> 5] |= 1 << (now & 31)
            values[find(keys, blocks[time]), 0] = now
    for word in range(now >> 5):
        add(new_tree, word + 1, ones(new_bits[word]))
    state[_TIME] = now
    return new_tree, new_bits, new_blocks


@njit(nogil=True, cache=True)
def consume(
    addresses, operands, begin, stop, shift,
    state, front, tree, bits, blocks, keys, values, far, near,
):  # fmt: skip
    """Count distances: in `near` up to FULL, in `far` by their power of two if they are greater. Returns the
    operand to go on with, once there is room for more times and keys."""
    for o in range(begin, stop):
        if slot_of(operands[o]) >= WRITE:
            continue
        if state[_TIME] + MOST_KEYS >= len(blocks) or full(len(keys), state[_KEYS]):
            return o
        for block in range(addresses[o] >> shift, (addresses[o] + size_of(operands[o]) - 1 >> shift) + 1):
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
                    word, bit = time >> 5, time & 31
                    distance = listed + state[_STORED] - upto(tree, word)
                    distance -= ones(bits[word] & (2 << bit) - 1)
                    bits[word] &= ~(1 << bit)
                    if word < state[_TIME] >> 5:
                        add(tree, word + 1, -1)
                    blocks[time] = EMPTY
                    values[at, 0] = 0
                    state[_STORED] -= 1
                if listed < FRONT:
                    state[_LISTED] += 1
                else:  # the last of the list becomes the most recent of the others
                    place = listed - 1
                    leaving = front[place]
                    state[_TIME] += 1
                    state[_STORED] += 1
                    time = state[_TIME]
                    if time & 31 == 0:  # the word before is full of times
                        add(tree, time >> 5, ones(bits[(time >> 5) - 1]))
                    bits[time >> 5] |= 1 << (time & 31)
                    blocks[time] = leaving
                    at = find(keys, leaving)
                    if keys[at] != leaving:
                        keys[at] = leaving
                        state[_KEYS] += 1
                    values[at, 0] = time
            while place > 0:
                front[place] = front[place - 1]
                place -= 1
            front[0] = block
            if distance < 0:
                state[_COLD] += 1
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
        self._state = np.zeros(6, np.int64)
        self._front = np.zeros(FRONT, np.int64)
        self._times = (np.zeros(1025, np.int64), np.zeros(1024, np.int64), np.full(1 << 15, EMPTY, np.int64))
        self._table = empty(1)
        self._far = np.zeros(BUCKETS, np.int64)
        self._near = np.zeros(FULL, np.int64)

    def see(self, part: Slice, facts: Facts) -> None:
        events = part.events
        at, stop = events.operands_at[part.begin], events.operands_at[part.end]
        while True:
            at = consume(
                *(events.addresses, events.operands, at, stop, self._shift),
                *(self._state, self._front, *self._times, *self._table, self._far, self._near),
            )
            if at == stop:
                return
            self._times = renumbered(*self._times, *self._table, self._state)
            if full(len(self._table[0]), self._state[_KEYS]):
                self._table = doubled(*self._table)

    def values(self) -> list[int]:
        histogram = self._far.copy()
        for k in range(7):  # 0 and 1, 2 and 3, 4 to 7 ...
            histogram[k] = self._near[1 << k if k else 0 : 2 << k].sum()
        return [*self._state[_REFERENCES:].tolist(), *histogram.tolist()]

    def full_values(self) -> list[int]:
        """References, cold ones, and those of each distance below 128, and beyond."""
        return [*self._state[_REFERENCES:].tolist(), *self._near.tolist(), int(self._far.sum())]

    def next_interval(self) -> None:
        self._state[_REFERENCES:] = 0
        self._far[:] = 0
        self._near[:] = 0
