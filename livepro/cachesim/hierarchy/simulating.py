"""The loop of the simulator of hierarchies, over spans of events."""

# mypy: ignore-errors

from __future__ import annotations

from numba import njit

from livepro.cachesim.hierarchy.asking import demand, prefetch
from livepro.cachesim.hierarchy.levels import (
    ACCESSES,
    COHERENT,
    DIRTY,
    EARLY,
    FETCH,
    OWNED,
    PREFETCH,
    READ,
    STRIDE,
    THROUGH,
    WRITE,
    find,
    set_of,
    touch,
)
from livepro.events.pointers import borrowed
from livepro.events.spans import operand as words

FETCHED, FETCHED_PAGE, LINE, LINE_WRITTEN, PAGE = range(5)
"""Columns of a core's `latest`: the line and page fetched last, the line accessed last (-1: ask again) and
whether it has been written since it was, the page accessed last."""
LATEST = PAGE + 1

HINTS = 256
"""Where pages accessed lately are in the first TLB of data, each at its number modulo that: it may have a
hundred ways to be searched."""

ENTRIES = 1024
"""Instructions that a stride prefetcher knows, each in the entry of its number modulo that."""
INSTRUCTION, ADDRESS, DISTANCE, CONFIDENCE = range(4)
"""Columns of such an entry."""
SURE, AHEAD = 2, 4
"""How often in a row a distance must be met again to be trusted; how many accesses ahead it looks then."""


@njit(nogil=True, cache=True, forceinline=True)
def foresee(table, instruction, address):
    """The address that an instruction is expected to access some accesses from now, -1 if it is not known."""
    entry = instruction % ENTRIES
    if table[entry, INSTRUCTION] != instruction:
        table[entry, INSTRUCTION], table[entry, ADDRESS] = instruction, address
        table[entry, DISTANCE] = table[entry, CONFIDENCE] = 0
        return -1
    distance = address - table[entry, ADDRESS]
    table[entry, ADDRESS] = address
    if distance == 0 or distance != table[entry, DISTANCE]:
        table[entry, DISTANCE] = distance
        table[entry, CONFIDENCE] = 0
        return -1
    table[entry, CONFIDENCE] += 1
    return address + AHEAD * distance if table[entry, CONFIDENCE] >= SURE else -1


@njit(nogil=True, cache=True)
def simulate(
    begins, ends, marks, operands_at, addresses, operands, begin, stop,
    lengths, address_of, bytes_of, next_fetch, bits, heads, core, latest, hints, table,
    spec, inner, cores, tags, ages, flags, clock, stat, memory, columns, counts, missed,
):  # fmt: skip
    """Simulate a core's fetches and accesses in their order, and count them and their misses by instruction:
    reads and writes in columns 1 and 2 of `counts`.

    An access of several lines is one to each; an instruction that writes what it has just read does both.
    """
    spec, inner, columns = borrowed(spec), borrowed(inner), borrowed(columns)
    tags, ages, flags, clock = borrowed(tags), borrowed(ages), borrowed(flags), borrowed(clock)
    stat, memory, hints, table = borrowed(stat), borrowed(memory), borrowed(hints), borrowed(table)
    counts, missed = borrowed(counts), borrowed(missed)
    first_i, first_d, tlb_i, tlb_d = heads[0], heads[1], heads[2], heads[3]
    page_i, page_d = heads[4] - bits, heads[5] - bits
    latest[LINE] = -1  # what other threads did since may have taken it away
    strides = spec[first_d, PREFETCH] == STRIDE
    through, coherent = spec[first_d, THROUGH] != 0, spec[first_d, COHERENT] != 0
    repeated_reads = repeated_writes = 0
    for s in range(begin, stop):
        i, end = begins[s], ends[s]
        whole = lengths[i] == end - i
        o, last = operands_at[s], operands_at[s + 1]
        while i < end:
            if marks[s]:
                line, line_behind = address_of[i] >> bits, (address_of[i] + bytes_of[i] - 1) >> bits
                while line <= line_behind:
                    if line != latest[FETCHED]:
                        latest[FETCHED] = line
                        page = line >> page_i
                        if tlb_i >= 0 and page != latest[FETCHED_PAGE]:
                            latest[FETCHED_PAGE] = page
                            demand(
                                spec, inner, cores, tags, ages, flags, clock, stat, memory, columns, counts,
                                missed, tlb_i, core, page, FETCH, i,
                            )  # fmt: skip
                        at = find(spec, tags, first_i, core, line)
                        if at >= 0 and not flags[at] & EARLY:
                            stat[first_i, ACCESSES + FETCH] += 1
                            touch(spec, ages, clock, first_i, set_of(spec, first_i, core, line), at)
                            line += 1
                            continue
                        latest[LINE] = -1  # it may be taken away
                        demand(
                            spec, inner, cores, tags, ages, flags, clock, stat, memory, columns, counts,
                            missed, first_i, core, line, FETCH, i,
                        )  # fmt: skip
                    line += 1
            following = next_fetch[i] if whole else end
            while o < last:
                word = operands[o]
                instruction, slot = words.instruction_of(word), words.slot_of(word)
                if instruction >= following:
                    break
                address, size = addresses[o], words.size_of(word)
                o += 1
                kind = READ if slot == words.READ1 or slot == words.READ2 else WRITE
                counts[instruction, kind] += 1
                line, line_behind = address >> bits, (address + size - 1) >> bits
                while line <= line_behind:
                    if line == latest[LINE] and (kind == READ or latest[LINE_WRITTEN]):
                        if kind == READ:
                            repeated_reads += 1
                        else:
                            repeated_writes += 1
                        line += 1
                        continue
                    page = line >> page_d
                    if tlb_d >= 0 and page != latest[PAGE]:
                        latest[PAGE] = page
                        at = hints[page % HINTS]
                        if tags[at] == page:
                            stat[tlb_d, ACCESSES + kind] += 1
                            touch(spec, ages, clock, tlb_d, set_of(spec, tlb_d, core, page), at)
                        else:
                            demand(
                                spec, inner, cores, tags, ages, flags, clock, stat, memory, columns, counts,
                                missed, tlb_d, core, page, kind, instruction,
                            )  # fmt: skip
                            hints[page % HINTS] = find(spec, tags, tlb_d, core, page)
                    at = find(spec, tags, first_d, core, line)
                    alone = not coherent or (at >= 0 and flags[at] & OWNED)
                    if at >= 0 and not flags[at] & EARLY and (kind == READ or (alone and not through)):
                        stat[first_d, ACCESSES + kind] += 1
                        touch(spec, ages, clock, first_d, set_of(spec, first_d, core, line), at)
                        if kind == WRITE:
                            flags[at] |= DIRTY
                        latest[LINE] = line
                        latest[LINE_WRITTEN] = kind == WRITE
                        line += 1
                        continue
                    settled = demand(
                        spec, inner, cores, tags, ages, flags, clock, stat, memory, columns, counts,
                        missed, first_d, core, line, kind, instruction,
                    )  # fmt: skip
                    latest[LINE] = line if settled else -1
                    latest[LINE_WRITTEN] = kind == WRITE and not through
                    line += 1
                if strides:
                    ahead = foresee(table, instruction, address)
                    ahead >>= bits  # -1 stays what it is
                    if ahead >= 0 and find(spec, tags, first_d, core, ahead) < 0:
                        prefetch(
                            spec, inner, cores, tags, ages, flags, clock, stat, memory, first_d, core,
                            ahead,
                        )  # fmt: skip
                        latest[LINE] = -1
            i = following
    stat[first_d, ACCESSES + READ] += repeated_reads
    stat[first_d, ACCESSES + WRITE] += repeated_writes
