"""Branch predictors, compiled, over branches in their order.

Bimodal has a 2-bit counter for each address (J. Smith, "A Study of Branch Prediction Strategies", ISCA 1981),
gshare for each address exclusive-or'd with the outcomes before (S. McFarling, "Combining Branch Predictors",
WRL TN-36, 1993). TAGE (A. Seznec and P. Michaud, "A case for (partially) TAgged GEometric history length
branch prediction", JILP 8, 2006) asks tables that know ever longer histories; what there is open, is here:

- six tables of 1,024 entries, histories of 5 to 130 outcomes, tags of 9 bits; before them a bimodal table of
  8,192 counters;
- an entry is new while it is weak and not useful. Then the next shorter one that matches is believed instead,
  if that has been better lately (a 4-bit counter of all);
- a misprediction takes the first useless entry of a longer history, weakly for the outcome. If there is none,
  all of them become less useful by one. Each 262,144 branches all usefulness is halved.

`fold[t, 0..2]` are the last outcomes of table t's history folded to 10, 9 and 8 bits, the newest lowest: the
outcome k before it is at bit k modulo that many.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

BITS = 14
"""Of an index into the tables of bimodal and gshare; gshare knows as many outcomes."""
BASE_BITS, TABLE_BITS, TAG_BITS = 13, 10, 9
HISTORIES = np.array([5, 10, 18, 35, 68, 130], np.int64)
"""5 * 26 ** (t / 5), rounded: geometric from 5 to 130."""
TABLES = 6
LONGEST = 256
"""Outcomes that are remembered: a power of two, above the longest history."""
FOLDED = np.array([TABLE_BITS, TAG_BITS, TAG_BITS - 1], np.int64)
AGED = 1 << 18
DEPTH = 16
"""Entries of the return-address stack; a call on a full one loses the oldest."""

TAG, COUNTER, USEFUL = range(3)
"""Columns of a tagged entry; its counter is from -4 to 3, taken from 0 on, its usefulness from 0 to 3."""


@njit(nogil=True, cache=True, forceinline=True)
def counted(counter, taken):
    """A 2-bit counter after an outcome."""
    return min(counter + 1, 3) if taken else max(counter - 1, 0)


@njit(nogil=True, cache=True)
def bimodal(branches, taken_of, begin, stop, kind, address_of, shift, counters, counts, column, missed):
    """Predict conditional branches by their addresses; count the mispredicted ones in `column`."""
    for b in range(begin, stop):
        i = branches[b]
        if kind[i] != CONDITIONAL:
            continue
        at = address_of[i] >> shift & (1 << BITS) - 1
        if (counters[at] >= 2) != (taken_of[b] != 0):
            counts[i, column] += 1
            missed[column] += 1
        counters[at] = counted(counters[at], taken_of[b])


@njit(nogil=True, cache=True)
def gshare(
    branches, taken_of, begin, stop, kind, address_of, shift, counters, history, counts, column, missed
):
    """Predict conditional branches by address and history."""
    known = history[0]
    for b in range(begin, stop):
        i = branches[b]
        if kind[i] != CONDITIONAL:
            continue
        at = (address_of[i] >> shift ^ known) & (1 << BITS) - 1
        if (counters[at] >= 2) != (taken_of[b] != 0):
            counts[i, column] += 1
            missed[column] += 1
        counters[at] = counted(counters[at], taken_of[b])
        known = (known << 1 | taken_of[b]) & (1 << BITS) - 1
    history[0] = known


SEEN, TRUST, ALL = range(3)
"""Of TAGE's `state`: outcomes in all, how far a shorter history is believed before a new entry (-8 to 7)."""


@njit(nogil=True, cache=True)
def tage(
    branches, taken_of, begin, stop, kind, address_of, shift, base, tables, fold, outcomes, state,
    counts, column, missed,
):  # fmt: skip
    """Predict conditional branches by the longest history that knows them."""
    at = np.zeros(TABLES, np.int64)
    tags = np.zeros(TABLES, np.int64)
    for b in range(begin, stop):
        i = branches[b]
        if kind[i] != CONDITIONAL:
            continue
        taken = taken_of[b] != 0
        pc = address_of[i] >> shift
        provider = other = -1
        for t in range(TABLES):
            at[t] = (pc ^ pc >> TABLE_BITS ^ fold[t, 0]) & (1 << TABLE_BITS) - 1
            tags[t] = (pc ^ fold[t, 1] ^ fold[t, 2] << 1) & (1 << TAG_BITS) - 1
            if tables[t, at[t], TAG] == tags[t]:
                provider, other = t, provider
        at_base = pc & (1 << BASE_BITS) - 1
        alternative = base[at_base] >= 2 if other < 0 else tables[other, at[other], COUNTER] >= 0
        if provider < 0:
            predicted = alternative
            base[at_base] = counted(base[at_base], taken)
        else:
            counter, useful = tables[provider, at[provider], COUNTER], tables[provider, at[provider], USEFUL]
            own = counter >= 0
            new = useful == 0 and (counter == 0 or counter == -1)
            predicted = alternative if new and state[TRUST] >= 0 else own
            if own != alternative:
                if new:
                    trust = state[TRUST] + (1 if alternative == taken else -1)
                    state[TRUST] = min(max(trust, -8), 7)
                tables[provider, at[provider], USEFUL] = min(max(useful + (1 if own == taken else -1), 0), 3)
            counter += 1 if taken else -1
            tables[provider, at[provider], COUNTER] = min(max(counter, -4), 3)
        if predicted != taken:
            counts[i, column] += 1
            missed[column] += 1
            free = provider + 1
            while free < TABLES and tables[free, at[free], USEFUL] != 0:
                free += 1
            if free < TABLES:
                tables[free, at[free], TAG] = tags[free]
                tables[free, at[free], COUNTER] = 0 if taken else -1
            else:
                for t in range(provider + 1, TABLES):
                    tables[t, at[t], USEFUL] -= 1
        seen = state[SEEN]
        for t in range(TABLES):
            leaving = outcomes[(seen - HISTORIES[t]) % LONGEST]
            for f in range(3):
                bits = FOLDED[f]
                word = fold[t, f] << 1 | taken
                word ^= leaving << HISTORIES[t] % bits
                fold[t, f] = (word ^ word >> bits) & (1 << bits) - 1
        outcomes[seen % LONGEST] = taken
        state[SEEN] = seen + 1
        if state[SEEN] % AGED == 0:
            for t in range(TABLES):
                for entry in range(1 << TABLE_BITS):
                    tables[t, entry, USEFUL] >>= 1


CONDITIONAL, CALL, RETURN, OTHER = range(4)
"""Kinds of transfers."""


@njit(nogil=True, cache=True)
def returns(branches, target_of, begin, stop, kind, address_of, bytes_of, stack, top, counts, column, missed):
    """Predict returns by the calls before them. `top` has how many were put on the stack, and how many of
    them are there."""
    for b in range(begin, stop):
        i = branches[b]
        if kind[i] == CALL:
            stack[top[0] % DEPTH] = address_of[i] + bytes_of[i]
            top[0] += 1
            top[1] = min(top[1] + 1, DEPTH)
        elif kind[i] == RETURN:
            known = top[1] > 0
            if known:
                top[0] -= 1
                top[1] -= 1
            if not known or stack[top[0] % DEPTH] != target_of[b]:
                counts[i, column] += 1
                missed[column] += 1


@njit(nogil=True, cache=True)
def count_branches(branches, begin, stop, kind, counts, missed):
    """Count conditional branches and returns by instruction, in columns 1 and 2."""
    for b in range(begin, stop):
        i = branches[b]
        column = 1 if kind[i] == CONDITIONAL else 2 if kind[i] == RETURN else 0
        if column:
            counts[i, column] += 1
            missed[column] += 1
