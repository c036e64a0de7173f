"""The loops of the simulator, over spans of events; what they simulate, `model` says.

An access to the line that its set was last accessed at hits, and changes nothing: most are that, and
dealt with in place. (To hand an array to a function takes longer than that.)
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.spans.operand import REWRITE, WRITE, instruction_of, size_of, slot_of

CACHE_EVENTS = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
BRANCH_EVENTS = ("Bc", "Bcm", "Bi", "Bim")
EVENTS = (*CACHE_EVENTS, *BRANCH_EVENTS)

COUNTERS, TARGETS = 1 << 14, 512
_NEXT = sum(
    next_one << 4 * counter + 2 * taken
    for counter in range(4)
    for taken, next_one in enumerate((max(counter - 1, 0), min(counter + 1, 3)))
)
"""What becomes of a saturating counter, two bits for each outcome of each of its values."""
I1, D1, LL = 0, 3, 6
"""Where the shape of each cache is: the bits of its lines, its sets minus one, its ways."""


@njit(nogil=True, cache=True, forceinline=True)
def set_misses(tags, at, ways, line):
    """Whether `line` is not among the `ways` lines from `at` on; it is then, as the most recent."""
    if tags[at] == line:
        return False
    for way in range(1, ways):
        if tags[at + way] == line:
            for n in range(way, 0, -1):
                tags[at + n] = tags[at + n - 1]
            tags[at] = line
            return False
    for n in range(ways - 1, 0, -1):
        tags[at + n] = tags[at + n - 1]
    tags[at] = line
    return True


@njit(nogil=True, cache=True, forceinline=True)
def misses(tags, shapes, cache, address, size):
    """Whether an access misses the `cache`-th of the `shapes`."""
    bits, mask, ways = shapes[cache], shapes[cache + 1], shapes[cache + 2]
    first, last = address >> bits, (address + size - 1) >> bits
    out = set_misses(tags, (first & mask) * ways, ways, first)
    for line in range(first + 1, last + 1):
        if set_misses(tags, (line & mask) * ways, ways, line):
            out = True
    return out


@njit(nogil=True, cache=True)
def count_runs(begins, ends, marks, begin, stop, runs):
    """Count executions: `runs` has how many more times an instruction is executed than the one before."""
    for s in range(begin, stop):
        if marks[s]:
            runs[begins[s]] += 1
            runs[ends[s]] -= 1


@njit(nogil=True, cache=True)
def simulate_caches(
    begins, ends, marks, operands_at, addresses, operands, begin, stop,
    lengths, address_of, bytes_of, next_fetch, shapes, i1, d1, ll, fetched, counts, missed,
):  # fmt: skip
    """Simulate fetches and accesses in their order, and count them and their misses by instruction.

    `fetched` is the line fetched last: another fetch of it changes nothing. So a block fetches at its first
    instruction and where `next_fetch` leads from there.
    """
    i_bits, i_mask, i_ways = shapes[I1], shapes[I1 + 1], shapes[I1 + 2]
    d_bits, d_mask, d_ways = shapes[D1], shapes[D1 + 1], shapes[D1 + 2]
    largest = 1 << d_bits
    latest = fetched[0]
    for s in range(begin, stop):
        i, end = begins[s], ends[s]
        whole = lengths[i] == end - i
        o, last = operands_at[s], operands_at[s + 1]
        while i < end:
            if marks[s]:
                address = address_of[i]
                line, line_behind = address >> i_bits, (address + bytes_of[i] - 1) >> i_bits
                if line != latest or line != line_behind:
                    latest = line_behind
                    if (line != line_behind or i1[(line & i_mask) * i_ways] != line) and misses(
                        i1, shapes, I1, address, bytes_of[i]
                    ):
                        counts[i, 1] += 1
                        missed[1] += 1
                        if misses(ll, shapes, LL, address, bytes_of[i]):
                            counts[i, 2] += 1
                            missed[2] += 1
            following = next_fetch[i] if whole else end
            while o < last:
                operand = operands[o]
                instruction, slot = instruction_of(operand), slot_of(operand)
                if instruction >= following:
                    break
                address = addresses[o]
                o += 1
                if slot == REWRITE:
                    continue
                event = 6 if slot == WRITE else 3
                size = min(size_of(operand), largest)
                counts[instruction, event] += 1
                line = address >> d_bits
                if (address + size - 1) >> d_bits == line:
                    first = (line & d_mask) * d_ways
                    if d1[first] == line:
                        continue
                    way = 1
                    while way < d_ways and d1[first + way] != line:
                        way += 1
                    hit = way < d_ways
                    if not hit:
                        way = d_ways - 1
                    while way > 0:
                        d1[first + way] = d1[first + way - 1]
                        way -= 1
                    d1[first] = line
                    if hit:
                        continue
                elif not misses(d1, shapes, D1, address, size):
                    continue
                counts[instruction, event + 1] += 1
                missed[event + 1] += 1
                if misses(ll, shapes, LL, address, size):
                    counts[instruction, event + 2] += 1
                    missed[event + 2] += 1
            i = following
    fetched[0] = latest


@njit(nogil=True, cache=True, forceinline=True)
def predict(i, taken, goes, conditional, address_of, history, counters, targets, counts, missed):
    """Predict the branch of instruction `i`, which was `taken` (0 or 1) to where it `goes`, and count it.
    Returns the history behind it."""
    address = address_of[i]
    if conditional[i]:
        at = history << 7 | address & 127
        counter = np.int64(counters[at])
        counts[i, 9] += 1
        if counter >> 1 != taken:
            counts[i, 10] += 1
            missed[10] += 1
        counters[at] = _NEXT >> (counter << 2 | taken << 1) & 3
        return (history << 1 | taken) & 127
    at = address & 511
    counts[i, 11] += 1
    if targets[at] != goes:
        counts[i, 12] += 1
        missed[12] += 1
    targets[at] = goes
    return history


@njit(nogil=True, cache=True)
def simulate_branches(
    branches, taken_of, target_of, begin, stop, conditional, address_of,
    history, counters, targets, counts, missed,
):  # fmt: skip
    """Predict branches, and count them and those mispredicted by instruction."""
    before = history[0]
    for b in range(begin, stop):
        before = predict(
            branches[b], np.int64(taken_of[b]), target_of[b], conditional, address_of,
            before, counters, targets, counts, missed,
        )  # fmt: skip
    history[0] = before
