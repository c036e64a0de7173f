"""Which thread reads and writes which bytes of which lines: compiled, in a hash table.

An entry is a line's and a thread's: `keys` has both (the thread lowest), `counts` reads and writes,
`bytes_of` which of its bytes were read and written, a bit for each, `who` an instruction that read and one
that wrote (the first; -1: none).
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import carray, njit

from livepro.events.pointers import pointer
from livepro.events.spans.operand import READ1, READ2, instruction_of, size_of, slot_of

LINE_BITS = 6
LINE = 1 << LINE_BITS
"""Bytes of a line: one for each bit of a word."""
THREAD_BITS = 12
THREADS = 1 << THREAD_BITS
EMPTY = np.iinfo(np.int64).min
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 by the golden ratio (Knuth, TAOCP 3, 6.4)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

OPERAND, NEXT_LINE, USED = range(3)
"""Of `state`: where `note` has come to (the operand, its next line: -1 for its first), the entries used."""


@njit(nogil=True, cache=True, forceinline=True)
def slot(keys, shift, key):
    """The entry of a key, or the free one where it would be."""
    at = np.int64(np.uint64(key) * _SPREAD >> np.uint64(shift))
    while keys[at] != key and keys[at] != EMPTY:
        at = at + 1 & len(keys) - 1
    return at


@njit(nogil=True, cache=True)
def note(addresses, operands, stop, thread, shift, keys, counts, bytes_of, who, state):
    """Note operands up to `stop`. Returns early when seven eighths of the entries are used."""
    keys = carray(pointer(keys), keys.shape)
    limit = len(keys) - len(keys) // 8
    o = state[OPERAND]
    latest, at = EMPTY, 0
    while o < stop:
        word, address = operands[o], addresses[o]
        size = size_of(word)
        kind = 0 if slot_of(word) == READ1 or slot_of(word) == READ2 else 1
        line, last = address >> LINE_BITS, address + size - 1 >> LINE_BITS
        if state[NEXT_LINE] >= 0:
            line = state[NEXT_LINE]
            state[NEXT_LINE] = -1
        while line <= last:
            key = line << THREAD_BITS | thread
            if key != latest:
                at = slot(keys, shift, key)
                if keys[at] == EMPTY:
                    if state[USED] >= limit:
                        state[OPERAND], state[NEXT_LINE] = o, line
                        return
                    state[USED] += 1
                    keys[at] = key
                latest = key
            counts[at, kind] += 1
            begin = max(address - (line << LINE_BITS), 0)
            end = min(address + size - (line << LINE_BITS), LINE)
            bytes_of[at, kind] |= _ALL >> np.uint64(LINE - (end - begin)) << np.uint64(begin)
            if who[at, kind] < 0:
                who[at, kind] = instruction_of(word)
            line += 1
        o += 1
    state[OPERAND] = o


@njit(nogil=True, cache=True)
def move(keys, counts, bytes_of, who, shift, new_keys, new_counts, new_bytes_of, new_who):
    """Move all entries to a table of another size."""
    for at in range(len(keys)):
        if keys[at] != EMPTY:
            to = slot(new_keys, shift, keys[at])
            new_keys[to] = keys[at]
            for kind in range(2):
                new_counts[to, kind] = counts[at, kind]
                new_bytes_of[to, kind] = bytes_of[at, kind]
                new_who[to, kind] = who[at, kind]


PRIVATE, READ, SHARED, FALSE = range(4)
"""Kinds of lines: used by one thread; read by several; with bytes that one thread writes and another uses;
written by one and used by another, but for the most part not the same bytes."""


@njit(nogil=True, cache=True)
def kinds_of(starts, bytes_of, counts):
    """The kind of each line, whose entries are the rows of `bytes_of` and `counts` from `starts` to the next.

    Two threads of which one writes have the line to do with each other as often as the one of fewer accesses
    makes some: truly if one writes bytes that the other one uses, else falsely. A line is of the kind that is
    more often; truly shared if both are the same.
    """
    out = np.zeros(len(starts) - 1, np.int64)
    for line in range(len(out)):
        first, behind = starts[line], starts[line + 1]
        if behind - first < 2:
            continue
        truly, falsely = 0, 0
        for a in range(first, behind):
            used, written = bytes_of[a, 0] | bytes_of[a, 1], bytes_of[a, 1]
            for b in range(a + 1, behind):
                if not written and not bytes_of[b, 1]:
                    continue
                times = min(counts[a, 0] + counts[a, 1], counts[b, 0] + counts[b, 1])
                if written & (bytes_of[b, 0] | bytes_of[b, 1]) or bytes_of[b, 1] & used:
                    truly += times
                else:
                    falsely += times
        if falsely > truly:
            out[line] = FALSE
        elif truly:
            out[line] = SHARED
        else:
            out[line] = READ
    return out
