"""Which blocks of memory were used last, and how many others since (LRU stack distances).

The blocks used last are in a short list, in any order, each with the number of its last use: processors
compare with many at once, and to keep the list in order would have each use wait for the one before. The
older ones have a time each, when they left that list. A bit for each time says whether it still is some
block's; a Fenwick tree over words of bits counts those of the words that are full of times. So a distance
costs at most the length of the list and the logarithm of the number of blocks.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.structures.tables import EMPTY, MOST_KEYS, doubled, empty, find, full

U = np.uint64  # an unsigned index needs no test for being negative
FRONT = 16
"""Length of the list of the blocks used last; behind them are the numbers of their last uses."""
LISTED, TIME, STORED, KEYS, NOW, LATEST = range(6)
"""Of the state: blocks in the list, the latest time, blocks that have one, blocks that are known, how many
uses there were but for those of the same block again, and the block used last."""


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
    for time in range(1, state[TIME] + 1):
        if blocks[time] != EMPTY:
            live += 1
    length = len(blocks)
    while (live + MOST_KEYS) * 2 > length:
        length *= 2
    new_blocks = np.full(length, EMPTY, np.int64)
    new_bits = np.zeros(length >> 5, np.int64)
    new_tree = np.zeros((length >> 5) + 1, np.int64)
    now = 0
    for time in range(1, state[TIME] + 1):
        if blocks[time] != EMPTY:
            now += 1
            new_blocks[now] = blocks[time]
            new_bits[now >> 5] |= 1 << (now & 31)
            values[find(keys, blocks[time]), 0] = now
    for word in range(now >> 5):
        add(new_tree, word + 1, ones(new_bits[word]))
    state[TIME] = now
    return new_tree, new_bits, new_blocks


@njit(nogil=True, cache=True, forceinline=True)
def room(state, blocks, keys):
    """Whether there is room for the blocks of one more event."""
    return state[TIME] + MOST_KEYS < blocks and not full(keys, state[KEYS])


@njit(nogil=True, cache=True, forceinline=True)
def use(block, state, front, tree, bits, blocks, keys, values):
    """Use a block: how many others have been used since it was used before, -1 if it never was."""
    if block == state[LATEST]:
        return 0
    now, listed = state[NOW] + 1, state[LISTED]
    state[NOW], state[LATEST] = now, block
    place = -1
    for n in range(FRONT):
        place = max(place, n if front[U(n)] == block else -1)
    if place >= 0:
        before, distance = front[U(FRONT + place)], 0
        for n in range(FRONT):
            distance += front[U(FRONT + n)] > before
        front[U(FRONT + place)] = now
        return distance
    at = find(keys, block)
    time = values[at, 0] if keys[at] == block else 0
    if time == 0:
        distance = -1
    else:
        word, bit = time >> 5, time & 31
        distance = listed + state[STORED] - upto(tree, word)
        distance -= ones(bits[word] & (2 << bit) - 1)
        bits[word] &= ~(1 << bit)
        if word < state[TIME] >> 5:
            add(tree, word + 1, -1)
        blocks[time] = EMPTY
        values[at, 0] = 0
        state[STORED] -= 1
    oldest = now
    for n in range(FRONT):
        oldest = min(oldest, front[U(FRONT + n)])
    for n in range(FRONT):
        place = max(place, n if front[U(FRONT + n)] == oldest else -1)
    leaving = front[U(place)]
    front[U(place)], front[U(FRONT + place)] = block, now
    if listed < FRONT:
        state[LISTED] += 1
    else:  # the one of the list used longest ago becomes the most recent of the others
        state[TIME] += 1
        state[STORED] += 1
        time = state[TIME]
        if time & 31 == 0:  # the word before is full of times
            add(tree, time >> 5, ones(bits[(time >> 5) - 1]))
        bits[time >> 5] |= 1 << (time & 31)
        blocks[time] = leaving
        at = find(keys, leaving)
        if keys[at] != leaving:
            keys[at] = leaving
            state[KEYS] += 1
        values[at, 0] = time
    return distance


class Recency:
    """The arrays of `use`, which grow."""

    def __init__(self) -> None:
        self._state = np.array([0, 0, 0, 0, 0, EMPTY], np.int64)
        self._front = np.array([EMPTY] * FRONT + [0] * FRONT, np.int64)
        self._times = (np.zeros(1025, np.int64), np.zeros(1024, np.int64), np.full(1 << 15, EMPTY, np.int64))
        self._table = empty(1)

    def arrays(self) -> tuple[np.ndarray, ...]:
        """What `use` is given behind the block."""
        return (self._state, self._front, *self._times, *self._table)

    def grow(self) -> None:
        """Make room for more: `room` has said that there is not enough."""
        self._times = renumbered(*self._times, *self._table, self._state)
        if full(len(self._table[0]), self._state[KEYS]):
            self._table = doubled(*self._table)
