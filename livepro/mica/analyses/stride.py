"""Strides: distances in bytes from an access to the last byte of the one before.

Local: the one before by the same operand of the same instruction; global: by any read, or any write.
Before the first one there is address 0.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.engines.stream import FLAGS, FLAGS_SHIFT
from livepro.events.pointers import borrowed
from livepro.events.spans.column import grown
from livepro.events.spans.feeding import Slice
from livepro.events.spans.operand import WRITE, instruction_of, size_of, slot_of
from livepro.events.structures.bits import length_of
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts
from livepro.mica.plain import (
    ACCESSES,
    BLOCK_BITS,
    COUNT_BITS,
    KIND_BITS,
    LENGTH,
    PLACES,
    SIZE_BITS,
    WORD_BITS,
    WORDS,
)

U = np.uint64  # an unsigned index needs no test for being negative
_0, _1 = U(0), U(1)
ONE, BLOCK = U(1), U(BLOCK_BITS)
LIMITS = (0, 8, 64, 512, 4096, 32768, 262144)
BUCKETS = len(LIMITS) + 1
_WORD, _SIZE, _COUNT = (1 << WORD_BITS) - 1, (1 << SIZE_BITS) - 1, (1 << COUNT_BITS) - 1
_BEYOND = np.array([*(sum((1 << n) > limit for limit in LIMITS) for n in range(64)), 0], np.int64)
"""By the bits of a distance less one, how many of LIMITS it is beyond: they are 0 and powers of two."""


@njit(nogil=True, cache=True, forceinline=True)
def bucket(distance, beyond):
    """How many of LIMITS a distance is beyond; without a branch, which would be hard to predict."""
    return U(beyond[length_of(distance - 1)])


@njit(nogil=True, cache=True)
def read(words, upto, at, rows, accesses, beyond, lasts, globals_, placed):
    """See `Analysis.read`. By place there are the last byte accessed, and in `placed` the buckets of local
    strides, and of global ones."""
    rows, accesses, beyond = borrowed(rows), borrowed(accesses), borrowed(beyond)
    lasts, placed = borrowed(lasts), borrowed(placed)
    behind, upto, at = U(len(words) - 1), U(upto), U(at)
    executed, last_read, last_write = 0, globals_[0], globals_[1]
    while at < upto:
        number = words[at]
        if number >> FLAGS_SHIFT & FLAGS:
            break
        row = U(number) << BLOCK
        next_at = at + U(rows[row + U(WORDS)])
        if next_at > behind or next_at == at:
            break
        executed += rows[row + U(LENGTH)]
        listed = rows[row + U(ACCESSES)]
        k = U(listed >> COUNT_BITS)
        end = k + U(listed & _COUNT)
        while k < end:
            access = accesses[k]
            k += ONE
            address, size = words[at + U(access & _WORD)], access >> WORD_BITS & _SIZE
            access >>= WORD_BITS + SIZE_BITS
            write, place = access & 1, U(access >> KIND_BITS)
            before = last_write if write else last_read
            counted = place * U(2 * BUCKETS)
            placed[counted + bucket(abs(address - lasts[place]), beyond)] += 1
            placed[counted + U(BUCKETS) + bucket(abs(address - before), beyond)] += 1
            last = address + size - 1
            lasts[place] = last
            last_read = last_read if write else last
            last_write = last if write else last_write
        at = next_at
    globals_[0], globals_[1] = last_read, last_write
    return np.int64(at), executed


@njit(nogil=True, cache=True)
def consume(addresses, operands, begin, stop, sites, beyond, locals_, globals_, counts, by_site):
    for o in range(U(begin), U(stop)):
        operand = operands[o]
        site, slot = U(sites[U(instruction_of(operand))]), U(min(slot_of(operand), WRITE))
        kind = U(slot == WRITE)
        address = addresses[o]
        near = bucket(abs(address - locals_[site, slot]), beyond)
        far = bucket(abs(address - globals_[kind]), beyond)
        counts[kind, _0, near] += 1
        counts[kind, _1, far] += 1
        by_site[site, kind, _0, near] += 1
        by_site[site, kind, _1, far] += 1
        last = address + size_of(operand) - 1
        locals_[site, slot] = last
        globals_[kind] = last


class Stride(Analysis):
    """Values: reads; local and global strides of reads of at most 0, 8, 64 ... 262144 bytes; the same of
    writes."""

    effort = 6

    def __init__(self) -> None:
        self._locals = np.zeros((1024, PLACES), np.int64)
        self._globals = np.zeros(2, np.int64)
        self._counts = np.zeros((2, 2, BUCKETS), np.int64)
        self._by_site = np.zeros((1024, 2, 2, BUCKETS), np.int64)
        self._placed = np.zeros((0, PLACES, 2, BUCKETS), np.int64)  # what has been counted by `read`

    def see(self, part: Slice, facts: Facts) -> None:
        self._locals = grown(self._locals, facts.sites_known)
        self._by_site = grown(self._by_site, facts.sites_known)
        events = part.events
        consume(
            *(events.addresses, events.operands),
            *(events.operands_at[part.begin], events.operands_at[part.end], facts.sites, _BEYOND),
            *(self._locals, self._globals, self._counts, self._by_site),
        )

    def read(self, words, upto, at, facts):
        self._locals = grown(self._locals, facts.sites_known)
        self._placed = grown(self._placed, facts.sites_known)
        return read(
            *(words, upto, at, facts.plain.rows, facts.plain.accesses, _BEYOND),
            *(self._locals.reshape(-1), self._globals, self._placed.reshape(-1)),
        )

    @property
    def by_site(self) -> np.ndarray:
        """Of each address over the whole run: reads and writes, local and global, by bucket."""
        out = self._by_site.copy()
        rows = len(self._placed)
        out[:rows, 0] += self._placed[:, 0] + self._placed[:, 1]
        out[:rows, 1] += self._placed[:, WRITE]
        return out

    def values(self) -> list[int]:
        placed = self._placed.sum(axis=0)
        return values_of(self._counts + np.stack((placed[0] + placed[1], placed[WRITE])))

    def next_interval(self) -> None:
        self._counts[:] = 0


def values_of(counts: np.ndarray) -> list[int]:
    """MICA's 30 numbers of counts by read or write, local or global, and bucket."""
    out: list[int] = []
    for kind in range(2):
        out.append(int(counts[kind, 0].sum()))
        for which in range(2):
            out += np.cumsum(counts[kind, which])[:7].tolist()
    return out
