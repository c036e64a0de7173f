"""Which accesses miss a cache and why, and what LRU caches of all sizes would miss: one compiled pass.

The classes are M. D. Hill's (Aspects of Cache Memory and Instruction Buffer Performance, 1987, 3.2): a
miss is compulsory at the first access to a line, a capacity miss where a fully associative LRU cache with
as many lines misses, too, and else a conflict miss. Such a cache holds the lines with the smallest stack
distances, so the distances tell of it, and of those of all other sizes.
"""

# mypy: ignore-errors

from __future__ import annotations

from numba import njit

from livepro.cachesim.simulating import set_misses
from livepro.events.pointers import borrowed
from livepro.events.spans.operand import instruction_of, size_of
from livepro.events.structures.recency import room, use

EVENTS = ("misses", "compulsory", "capacity", "conflict", "accesses")
"""What is counted of each instruction."""
MISSES, COMPULSORY, CAPACITY, CONFLICT, ACCESSES = range(len(EVENTS))
SPARED = len(EVENTS)
"""In the totals, behind the events: hits that the fully associative cache would have missed."""
SIZES = 48
"""Cache sizes that misses are counted for: 1, 2, 4 ... lines."""


@njit(nogil=True, cache=True)
def classify(
    addresses, operands, begin, stop, line_bits, mask, ways, tags,
    state, front, tree, bits, blocks, keys, values, distances, counts, totals,
):  # fmt: skip
    """Access lines: count in `counts` by instruction, in `totals` altogether, and in `distances`, at n, the
    accesses whose distance has n bits. Returns the operand to go on with, once there is room for more."""
    lines = (mask + 1) * ways
    state, front, tree, bits = borrowed(state), borrowed(front), borrowed(tree), borrowed(bits)
    blocks, keys, values = borrowed(blocks), borrowed(keys), borrowed(values)
    tags, counts, totals = borrowed(tags), borrowed(counts), borrowed(totals)
    for o in range(begin, stop):
        if not room(state, len(blocks), len(keys)):
            return o
        word = operands[o]
        instruction = instruction_of(word)
        for line in range(addresses[o] >> line_bits, (addresses[o] + size_of(word) - 1 >> line_bits) + 1):
            counts[instruction, ACCESSES] += 1
            totals[ACCESSES] += 1
            distance = use(line, state, front, tree, bits, blocks, keys, values)
            if distance >= 0:
                n = 0
                while distance >> n:
                    n += 1
                distances[n] += 1
                if distance == 0:
                    continue  # the most recent of its set, too
            missed = set_misses(tags, (line & mask) * ways, ways, line)
            if distance < 0:
                cause = COMPULSORY
            elif not missed:
                if distance >= lines:
                    totals[SPARED] += 1
                continue
            elif distance >= lines:
                cause = CAPACITY
            else:
                cause = CONFLICT
            counts[instruction, cause] += 1
            counts[instruction, MISSES] += 1
            totals[cause] += 1
            totals[MISSES] += 1
    return stop
