"""Strides: distances in bytes from an access to the last byte of the one before.

Local: the one before by the same operand of the same instruction; global: by any read, or any write.
Before the first one there is address 0.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.spans.column import grown
from livepro.events.spans.feeding import Slice
from livepro.events.spans.operand import WRITE, instruction_of, size_of, slot_of
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts

U = np.uint64  # an unsigned index needs no test for being negative
_0, _1 = U(0), U(1)
LIMITS = (0, 8, 64, 512, 4096, 32768, 262144)


@njit(nogil=True, cache=True)
def bucket(distance):
    """How many of LIMITS a distance is beyond; without a branch, which would be hard to predict."""
    n = (distance > 0) + (distance > 8) + (distance > 64) + (distance > 512)
    return n + (distance > 4096) + (distance > 32768) + (distance > 262144)


@njit(nogil=True, cache=True)
def consume(
    addresses, operands, begin, stop, sites, locals_, globals_, counts, by_site
):  # fmt: skip
    for o in range(U(begin), U(stop)):
        operand = operands[o]
        site, slot = U(sites[U(instruction_of(operand))]), U(min(slot_of(operand), WRITE))
        kind = U(slot == WRITE)
        address = addresses[o]
        near, far = U(bucket(abs(address - locals_[site, slot]))), U(bucket(abs(address - globals_[kind])))
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
        self._locals = np.zeros((1024, 3), np.int64)
        self._globals = np.zeros(2, np.int64)
        self._counts = np.zeros((2, 2, 8), np.int64)
        self.by_site = np.zeros((1024, 2, 2, 8), np.int64)
        """Of each address over the whole run: reads and writes, local and global, by bucket."""

    def see(self, part: Slice, facts: Facts) -> None:
        self._locals = grown(self._locals, facts.sites_known)
        self.by_site = grown(self.by_site, facts.sites_known)
        events = part.events
        consume(
            *(events.addresses, events.operands),
            *(events.operands_at[part.begin], events.operands_at[part.end], facts.sites),
            *(self._locals, self._globals, self._counts, self.by_site),
        )

    def values(self) -> list[int]:
        return values_of(self._counts)

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
