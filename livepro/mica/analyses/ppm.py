"""Branch predictability: twelve predictors by prediction by partial matching.

Four variants, three history lengths each: the history is one of all branches (G) or the branch's own (P); the
tables are shared (g) or the branch's own (s). A predictor of history length h has tables of orders 0 to h,
indexed by as many bits of the history, of signed counters. The highest order whose counter is not zero
predicts, taken if it is positive; without any, order 0, not taken. Orders from that one on learn.

The original lets the branch's own tables begin with -1, so that order h predicts always and no other is used.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.pointers import borrowed
from livepro.events.spans.column import grown
from livepro.events.spans.feeding import Slice
from livepro.events.structures.tables import EMPTY, MULTIPLIER, full
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts

LENGTHS = (4, 8, 12)
VARIANTS = ("GAg", "PAg", "GAs", "PAs")
_MOST = 127
_OF_4 = (2 << 4) - 1
_OWN = _OF_4 + (2 << 8) - 1
"""Counters of the predictors of lengths 4 and 8: those of a branch's own that are all there."""
_SHARED = _OWN + (2 << 12) - 1


def outcomes() -> np.ndarray:
    """What becomes of each counter (a byte) by an outcome (1: taken, in the ninth bit): it learns,
    saturating and never 0; 256 is added where it predicts the other outcome."""
    out = np.zeros(512, np.int64)
    for taken in range(2):
        for byte in range(256):
            counter = byte - 256 if byte > 127 else byte
            step = 1 if taken else -1
            learned = min(max(counter + step or step, -_MOST), _MOST)
            out[taken << 8 | byte] = (learned & 0xFF) + ((counter > 0) != (taken == 1)) * 256
    return out


_OUTCOMES = outcomes()


@njit(nogil=True, cache=True)
def search(tables, base, length, history, taken):
    """Whether a predictor, whose tables of orders 0 to `length` lie behind one another from `base` on, is
    wrong (1) or right (0), where it is not known that the highest order predicts; it learns."""
    order = length
    while order > 0 and tables[base + (1 << order) - 1 + (history & (1 << order) - 1)] == 0:
        order -= 1
    wrong = _OUTCOMES[taken << 8 | tables[base + (1 << order) - 1 + (history & (1 << order) - 1)]] >> 8
    for o in range(order, length + 1):
        at = base + (1 << o) - 1 + (history & (1 << o) - 1)
        tables[at] = _OUTCOMES[taken << 8 | tables[at]] & 0xFF
    return wrong


@njit(nogil=True, cache=True, forceinline=True)
def find(table, key):
    """Where the counter of `key` is in a hash table, or where it would be put: an entry has the key and, in
    its lowest byte, the counter."""
    mask = len(table) - 1
    at = (key * MULTIPLIER >> 29) & mask
    while table[at] >> 8 != key and table[at] != EMPTY:
        at = (at + 1) & mask
    return at


@njit(nogil=True, cache=True)
def doubled(table):
    """A hash table of twice the size with the same entries."""
    out = np.full(2 * len(table), EMPTY, np.int64)
    for entry in table:
        if entry != EMPTY:
            out[find(out, entry >> 8)] = entry
    return out


@njit(nogil=True, cache=True)
def search_long(table, state, branch, variant, history, initial, taken):
    """The same of a branch's own predictor of the greatest length: only counters that have learned are there.
    A key names the branch, whose history it is, the order and the bits of the history."""
    named = (branch * 2 + variant) * 16
    order = 12
    while True:
        key = (named + order << 12) | history & (1 << order) - 1
        at = find(table, key)
        counter = table[at] & 0xFF if table[at] != EMPTY else initial
        if counter != 0 or order == 0:
            break
        order -= 1
    wrong = _OUTCOMES[taken << 8 | counter] >> 8
    while True:
        state[1] += table[at] == EMPTY
        table[at] = key << 8 | _OUTCOMES[taken << 8 | counter] & 0xFF
        if order == 12:
            return wrong
        order += 1
        key = (named + order << 12) | history & (1 << order) - 1
        at = find(table, key)
        counter = table[at] & 0xFF if table[at] != EMPTY else initial


@njit(nogil=True, cache=True, forceinline=True)
def learn(tables, at, ninth):
    """Have a counter learn an outcome (in the ninth bit of `ninth`); 1 if it predicted the other one."""
    outcome = _OUTCOMES[ninth | tables[at]]
    tables[at] = outcome & 0xFF
    return outcome >> 8


@njit(nogil=True, cache=True)
def consume(
    branches, taken_of, begin, stop, numbers, initial,
    shared, own_tables, state, by_branch, histories, last, table,
):  # fmt: skip
    """Mostly the highest order of each predictor predicts. Only what is rare is a call: to hand an array to a
    function takes longer than what is to be done."""
    shared, own_tables, table = borrowed(shared), borrowed(own_tables), borrowed(table)
    state, by_branch, histories = borrowed(state), borrowed(by_branch), borrowed(histories)
    for e in range(begin, stop):
        if full(len(table), state[1]):
            return e
        branch = numbers[branches[e]]
        taken = np.int64(taken_of[e])
        ninth = taken << 8
        glob, own = state[0], histories[branch]
        mine = branch * (2 * _OWN)
        a0, a1 = 15 + (glob & 15), _SHARED + 15 + (own & 15)
        a2, a3 = mine + 15 + (glob & 15), mine + _OWN + 15 + (own & 15)
        b0, b1 = _OF_4 + 255 + (glob & 255), _SHARED + _OF_4 + 255 + (own & 255)
        b2, b3 = mine + _OF_4 + 255 + (glob & 255), mine + _OWN + _OF_4 + 255 + (own & 255)
        c0, c1 = _OWN + 4095 + glob, _SHARED + _OWN + 4095 + own
        known = (shared[a0] != 0) & (shared[a1] != 0) & (own_tables[a2] != 0) & (own_tables[a3] != 0)
        known &= (shared[b0] != 0) & (shared[b1] != 0) & (own_tables[b2] != 0) & (own_tables[b3] != 0)
        if known & (shared[c0] != 0) & (shared[c1] != 0):
            by_branch[branch, 3] += learn(shared, a0, ninth)
            by_branch[branch, 4] += learn(shared, a1, ninth)
            by_branch[branch, 5] += learn(own_tables, a2, ninth)
            by_branch[branch, 6] += learn(own_tables, a3, ninth)
            by_branch[branch, 7] += learn(shared, b0, ninth)
            by_branch[branch, 8] += learn(shared, b1, ninth)
            by_branch[branch, 9] += learn(own_tables, b2, ninth)
            by_branch[branch, 10] += learn(own_tables, b3, ninth)
            by_branch[branch, 11] += learn(shared, c0, ninth)
            by_branch[branch, 12] += learn(shared, c1, ninth)
        else:
            for n in range(3):
                length = 4 * (n + 1)
                base = 0 if n == 0 else (_OF_4 if n == 1 else _OWN)
                by_branch[branch, 4 * n + 3] += search(shared, base, length, glob, taken)
                by_branch[branch, 4 * n + 4] += search(shared, _SHARED + base, length, own, taken)
                if n < 2:
                    by_branch[branch, 4 * n + 5] += search(own_tables, mine + base, length, glob, taken)
                    by_branch[branch, 4 * n + 6] += search(own_tables, mine + _OWN + base, length, own, taken)
        for variant in range(2):
            history = own if variant else glob
            key = (branch * 2 + variant) * 16 + 12 << 12 | history
            at = find(table, key)
            entry = table[at]
            if entry == EMPTY or entry & 0xFF == 0:
                wrong = search_long(table, state, branch, variant, history, initial, taken)
                by_branch[branch, 13 + variant] += wrong
            else:
                outcome = _OUTCOMES[ninth | entry & 0xFF]
                table[at] = key << 8 | outcome & 0xFF
                by_branch[branch, 13 + variant] += outcome >> 8
        state[0] = (glob << 1 | taken) & 0xFFF
        histories[branch] = (own << 1 | taken) & 0xFFF
        by_branch[branch, 0] += 1
        by_branch[branch, 1] += taken
        by_branch[branch, 2] += 1 if last[branch] != 0 and last[branch] != taken + 1 else 0
        last[branch] = taken + 1
    return stop


class Ppm(Analysis):
    """Values: mispredictions by history length, and in that by variant; branches executed; the sums over
    static branches of the rarer of transition and repetition, and of taken and not taken."""

    effort = 30

    def __init__(self, initial: int = -1) -> None:
        self._initial = initial & 0xFF
        self._shared = np.zeros(2 * _SHARED, np.uint8)
        self._own = np.full(256 * 2 * _OWN, self._initial, np.uint8)
        self._state = np.zeros(2, np.int64)
        self._by_branch = np.zeros((256, 15), np.int64)
        self._histories = np.zeros(256, np.int64)
        self._last = np.zeros(256, np.int64)
        self._table = np.full(1 << 15, EMPTY, np.int64)
        self.before = np.zeros((256, 15), np.int64)
        """Of each static branch, over all intervals that have ended: executed, taken, transitions, misses."""

    def see(self, part: Slice, facts: Facts) -> None:
        known = facts.branches_known
        if len(self._histories) < known:
            for name in ("_by_branch", "_histories", "_last"):
                setattr(self, name, grown(getattr(self, name), known))
            more = len(self._histories) * 2 * _OWN - len(self._own)
            self._own = np.concatenate((self._own, np.full(more, self._initial, np.uint8)))
        events = part.events
        at = part.first_branch
        while True:
            at = consume(
                *(events.branches, events.taken, at, part.last_branch, facts.branches, self._initial),
                *(self._shared, self._own, self._state, self._by_branch, self._histories, self._last),
                self._table,
            )
            if at == part.last_branch:
                break
            self._table = doubled(self._table)

    @property
    def by_number(self) -> np.ndarray:
        """Of each static branch over the whole run: executed, taken, transitions, 12 numbers of misses."""
        before = grown(self.before, len(self._by_branch))
        return before[: len(self._by_branch)] + self._by_branch

    def values(self) -> list[int]:
        executed, taken, transitions = self._by_branch[:, :3].T
        rarer = np.minimum(transitions, executed - transitions), np.minimum(taken, executed - taken)
        misses = self._by_branch[:, 3:].sum(axis=0).tolist()
        return [*misses, int(executed.sum()), int(rarer[0].sum()), int(rarer[1].sum())]

    def next_interval(self) -> None:
        self.before = self.by_number
        self._by_branch[:] = 0
