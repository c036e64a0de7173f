"""Strides: distances in bytes from an access to the last byte of the one before.

Local: the one before by the same operand of the same instruction; global: by any read, or any write.
Before the first one there is address 0.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.analyses.itypes import grown
from livepro.mica.facts import Facts
from livepro.mica.flattening import WRITE

LIMITS = (0, 8, 64, 512, 4096, 32768, 262144)


@njit(nogil=True, cache=True)
def bucket(distance):
    """The first of LIMITS that a distance is not beyond, 7 if it is beyond all."""
    if distance == 0:
        return 0
    limit, n = 8, 1
    while n < 7 and distance > limit:
        limit <<= 3
        n += 1
    return n


@njit(nogil=True, cache=True)
def consume(
    instructions, operands_at, addresses, sizes, slots, begin, stop, sites, locals_, globals_, counts, by_site
):  # fmt: skip
    for e in range(begin, stop):
        o0, o1 = operands_at[e], operands_at[e + 1]
        if o0 == o1:
            continue
        site = sites[instructions[e]]
        for o in range(o0, o1):
            slot = slots[o]
            kind = 1 if slot == WRITE else 0
            address = addresses[o]
            near, far = bucket(abs(address - locals_[site, slot])), bucket(abs(address - globals_[kind]))
            counts[kind, 0, near] += 1
            counts[kind, 1, far] += 1
            by_site[site, kind, 0, near] += 1
            by_site[site, kind, 1, far] += 1
            last = address + sizes[o] - 1
            locals_[site, slot] = last
            globals_[kind] = last


class Stride(Analysis):
    """Values: reads; local and global strides of reads of at most 0, 8, 64 ... 262144 bytes; the same of
    writes."""

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
            *(events.instructions, events.operands_at, events.addresses, events.sizes, events.slots),
            *(part.begin, part.end, facts.sites),
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
