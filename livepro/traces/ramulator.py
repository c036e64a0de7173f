"""What reaches memory behind simulated caches, as Ramulator 2's LoadStoreTrace reads it: ``LD 0xaddr`` for a
line that is fetched, ``ST 0xaddr`` for a modified one that is written back.

The caches are those of `livepro.cachesim`, whose misses are the lines fetched; here a line also remembers
that it was modified. A modified line that leaves the first level modifies the last level's, or goes to
memory where that has it no longer.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.traces.texts import put_hex


@njit(nogil=True, cache=True)
def touch(tags, dirty, at, ways, line, write, gone):
    """Whether `line` is not among the `ways` lines from `at` on; it is then, as the most recent. `gone` has
    the line that gave way (0: none) and whether it was modified."""
    gone[0] = 0
    found = ways - 1
    miss = True
    for way in range(ways):
        if tags[at + way] == line:
            found, miss = way, False
            break
    changed = 0 if miss else dirty[at + found]
    if miss:
        gone[0], gone[1] = tags[at + found], dirty[at + found]
    for n in range(found, 0, -1):
        tags[at + n], dirty[at + n] = tags[at + n - 1], dirty[at + n - 1]
    tags[at] = line
    dirty[at] = changed | write
    return miss


@njit(nogil=True, cache=True)
def _put(out, at, store, address):
    out[at], out[at + 1] = (83, 84) if store else (76, 68)
    out[at + 2], out[at + 3], out[at + 4] = 32, 48, 120
    at = put_hex(out, at + 5, address, 1)
    out[at] = 10
    return at + 1


@njit(nogil=True, cache=True)
def to_memory(
    what, where, size, count, first, out, shapes, i1, d1, ll, i1_dirty, d1_dirty, ll_dirty, gone
):  # fmt: skip
    """Let the caches see the events from `first` on as long as `out` (uint8) has room; the next event, and
    how many bytes of text there are."""
    at, e = 0, first
    while e < count:
        does = what[e]
        if does > 3:
            e += 1
            continue
        if does == 0:
            cache, tags, dirty = 0, i1, i1_dirty
        else:
            cache, tags, dirty = 3, d1, d1_dirty
        write = 1 if does >= 2 else 0
        bits, mask, ways = shapes[cache], shapes[cache + 1], shapes[cache + 2]
        least = where[e] >> bits
        most = (where[e] + min(size[e], 1 << bits if cache else size[e]) - 1) >> bits
        if at + (most - least + 1) * 6 * 24 > len(out):
            break
        missed = False
        for line in range(least, most + 1):
            if touch(tags, dirty, (line & mask) * ways, ways, line, write, gone):
                missed = True
                if gone[0] and gone[1]:
                    address = gone[0] << bits
                    victim = address >> shapes[6]
                    place = (victim & shapes[7]) * shapes[8]
                    kept = False
                    for way in range(shapes[8]):
                        if ll[place + way] == victim:
                            ll_dirty[place + way] = 1
                            kept = True
                    if not kept:
                        at = _put(out, at, True, address)
        if missed:
            end = where[e] + min(size[e], 1 << bits if cache else size[e]) - 1
            for line in range(where[e] >> shapes[6], (end >> shapes[6]) + 1):
                if touch(ll, ll_dirty, (line & shapes[7]) * shapes[8], shapes[8], line, 0, gone):
                    at = _put(out, at, False, line << shapes[6])
                    if gone[0] and gone[1]:
                        at = _put(out, at, True, gone[0] << shapes[6])
        e += 1
    return e, at


class RamulatorWriter:
    """Writes one thread's trace."""

    def __init__(self, output, hierarchy) -> None:
        self._output = output
        caches = hierarchy[:3]
        self._shapes = np.array(
            [n for c in caches for n in (c.line.bit_length() - 1, c.sets - 1, c.ways)], np.int64
        )
        lines = [cache.size // cache.line for cache in caches]
        self._state = [np.zeros(n, np.int64) for n in lines] + [np.zeros(n, np.int8) for n in lines]
        self._gone = np.zeros(2, np.int64)
        self._text = np.zeros(1 << 20, np.uint8)

    def put(self, events, tables) -> None:
        """The next events."""
        e = 0
        while e < events.count:
            e, end = to_memory(
                *(events.what, events.where, events.size, events.count, e, self._text),
                *(self._shapes, *self._state, self._gone),
            )
            self._output.write(memoryview(self._text[:end]))

    def close(self) -> None:
        """Nothing is held back: what is modified in the caches stays there."""
