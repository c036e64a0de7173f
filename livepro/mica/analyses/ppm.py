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

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.analyses.itypes import grown
from livepro.mica.facts import Facts
from livepro.mica.tables import doubled, empty, find, full

LENGTHS = (4, 8, 12)
VARIANTS = ("GAg", "PAg", "GAs", "PAs")
_MOST = 127
_SHARED = sum(2 ** (h + 1) - 1 for h in LENGTHS)
_EXECUTED, _TAKEN, _TRANSITIONS = range(3)


@njit(nogil=True, cache=True)
def stepped(counter, taken):
    """A counter that has learned an outcome: saturating, never 0."""
    if taken:
        counter += 1
        return _MOST if counter > _MOST else (1 if counter == 0 else counter)
    counter -= 1
    return -_MOST if counter < -_MOST else (-1 if counter == 0 else counter)


@njit(nogil=True, cache=True)
def predict_shared(table, base, length, history, taken):
    """Whether a shared predictor, whose tables begin at `base`, is right; it learns."""
    order = length
    while order > 0 and table[base + (1 << order) - 1 + (history & (1 << order) - 1)] == 0:
        order -= 1
    right = (table[base + (1 << order) - 1 + (history & (1 << order) - 1)] > 0) == (taken != 0)
    for o in range(order, length + 1):
        at = base + (1 << o) - 1 + (history & (1 << o) - 1)
        table[at] = stepped(table[at], taken)
    return right


@njit(nogil=True, cache=True)
def consume(
    branches, taken_of, begin, stop, sites, initial,
    shared, state, misses, by_branch, histories, last, keys, values,
):  # fmt: skip
    for e in range(begin, stop):
        if full(keys, state[1]):
            return e
        branch = sites[branches[e]]
        taken = taken_of[e]
        glob, own = state[0], histories[branch]
        base = 0
        for n in range(3):
            length = 4 * (n + 1)
            for variant in range(4):
                history = own if variant & 1 else glob
                if variant < 2:
                    right = predict_shared(shared, variant * _SHARED + base, length, history, taken)
                else:
                    # A key names the branch, the predictor, the order and the bits of the history.
                    named = ((branch * 2 + (variant & 1)) * 3 + n) * 16
                    order = length
                    while True:
                        key = (named + order << 12) | history & (1 << order) - 1
                        at = find(keys, key)
                        counter = values[at, 0] if keys[at] == key else initial
                        if counter != 0 or order == 0:
                            break
                        order -= 1
                    right = (counter > 0) == (taken != 0)
                    for o in range(order, length + 1):
                        if o > order:
                            key = (named + o << 12) | history & (1 << o) - 1
                            at = find(keys, key)
                            counter = values[at, 0] if keys[at] == key else initial
                        if keys[at] != key:
                            keys[at] = key
                            state[1] += 1
                        values[at, 0] = stepped(counter, taken)
                if not right:
                    misses[n * 4 + variant] += 1
                    by_branch[branch, n * 4 + variant + 3] += 1
            base += (2 << length) - 1
        state[0] = (glob << 1 | taken) & 0xFFF
        histories[branch] = (own << 1 | taken) & 0xFFF
        by_branch[branch, 0] += 1
        by_branch[branch, 1] += taken
        if last[branch] != 0 and last[branch] != taken + 1:
            by_branch[branch, 2] += 1
        last[branch] = taken + 1
    return stop


class Ppm(Analysis):
    """Values: mispredictions by history length, and in that by variant; branches executed; the sums over
    static branches of the rarer of transition and repetition, and of taken and not taken."""

    def __init__(self, initial: int = -1) -> None:
        self._initial = initial
        self._shared = np.zeros(2 * _SHARED, np.int64)
        self._state = np.zeros(2, np.int64)
        self._misses = np.zeros(12, np.int64)
        self._by_branch = np.zeros((256, 15), np.int64)
        self._histories = np.zeros(256, np.int64)
        self._last = np.zeros(256, np.int64)
        self._table = empty(1)
        self.before = np.zeros((256, 15), np.int64)
        """Of each static branch, over all intervals that have ended: executed, taken, transitions, misses."""

    def see(self, part: Slice, facts: Facts) -> None:
        if len(self._histories) < facts.sites_known:
            for name in ("_by_branch", "_histories", "_last"):
                setattr(self, name, grown(getattr(self, name), facts.sites_known))
        events = part.events
        at = part.first_branch
        while True:
            at = consume(
                *(events.branches, events.taken, at, part.last_branch, facts.sites, self._initial),
                *(self._shared, self._state, self._misses, self._by_branch, self._histories, self._last),
                *self._table,
            )
            if at == part.last_branch:
                break
            self._table = doubled(*self._table)

    @property
    def by_site(self) -> np.ndarray:
        """Of each static branch over the whole run: executed, taken, transitions, 12 numbers of misses."""
        before = grown(self.before, len(self._by_branch))
        return before[: len(self._by_branch)] + self._by_branch

    def values(self) -> list[int]:
        executed, taken, transitions = self._by_branch[:, :3].T
        rarer = np.minimum(transitions, executed - transitions), np.minimum(taken, executed - taken)
        return [*self._misses.tolist(), int(executed.sum()), int(rarer[0].sum()), int(rarer[1].sum())]

    def next_interval(self) -> None:
        self.before = self.by_site
        self._misses[:] = 0
        self._by_branch[:] = 0
