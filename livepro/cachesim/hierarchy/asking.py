"""What a core's access does to the levels of a hierarchy, and what a prefetcher does."""

# mypy: ignore-errors

from __future__ import annotations

from numba import njit

from livepro.cachesim.hierarchy.coherence import claim, share
from livepro.cachesim.hierarchy.levels import (
    ACCESSES,
    COHERENT,
    DIRTY,
    EARLY,
    MISSES,
    NEXT,
    NEXT_LINE,
    OWNED,
    POLICY,
    PREFETCH,
    PREFETCHED,
    SRRIP,
    THROUGH,
    TLB,
    TO_MEMORY,
    WRITE,
    bring,
    find,
    set_of,
    use,
)

ACCESS_MODIFIED, LOST = range(2)
"""Columns of the last row of `columns`: where accesses to what another core has modified are counted, and
copies of others that writes have taken."""


@njit(nogil=True, cache=True, forceinline=True)
def count_miss(stat, columns, counts, missed, level, kind, instruction):
    """A level does not have what it is asked for."""
    stat[level, MISSES + kind] += 1
    counts[instruction, columns[level, kind]] += 1
    missed[columns[level, kind]] += 1


@njit(nogil=True, cache=True, forceinline=True)
def count_other(columns, counts, missed, instruction, which, times):
    """Count what an access has met of other cores (`which` column of the last row)."""
    if times:
        column = columns[len(columns) - 1, which]
        counts[instruction, column] += times
        missed[column] += times


@njit(nogil=True, cache=True)
def prefetch(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, core, line):
    """Have a level hold a line before anybody asks for it."""
    if find(spec, tags, level, core, line) >= 0:
        return
    stat[level, PREFETCHED] += 1
    hit, asks = spec[level, NEXT], spec[level, COHERENT] != 0
    while True:
        if asks and (hit < 0 or not spec[hit, COHERENT]):
            share(spec, inner, cores, tags, ages, flags, clock, stat, memory, core, line)
            asks = False
        if hit < 0 or find(spec, tags, hit, core, line) >= 0:
            break
        hit = spec[hit, NEXT]
    bring(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, hit, core, line, EARLY)


@njit(nogil=True, cache=True)
def demand(
    spec, inner, cores, tags, ages, flags, clock, stat, memory, columns, counts, missed,
    first, core, line, kind, instruction,
):  # fmt: skip
    """One access to one line (page), which goes to level `first`; True if the same access again would change
    nothing but that level's count of accesses.

    `columns[level, kind]` is where misses are counted: of an instruction in `counts`, of all in `missed`.
    Its last row: ACCESS_MODIFIED and LOST.
    """
    start, asks = first, spec[first, COHERENT] != 0
    if asks and kind == WRITE:
        losers, modified = claim(spec, inner, cores, tags, ages, flags, clock, stat, memory, core, line)
        count_other(columns, counts, missed, instruction, LOST, losers)
        count_other(columns, counts, missed, instruction, ACCESS_MODIFIED, modified)
        asks = False
    while kind == WRITE and start >= 0 and spec[start, THROUGH]:
        stat[start, ACCESSES + WRITE] += 1
        slot = find(spec, tags, start, core, line)
        if slot >= 0:
            use(spec, ages, flags, clock, stat, start, set_of(spec, start, core, line), slot)
        else:
            count_miss(stat, columns, counts, missed, start, WRITE, instruction)
        start = spec[start, NEXT]
    if start < 0:
        memory[TO_MEMORY] += 1
        return False
    hit, useful = start, -1
    while True:
        if asks and (hit < 0 or not spec[hit, COHERENT]):
            modified = share(spec, inner, cores, tags, ages, flags, clock, stat, memory, core, line)
            count_other(columns, counts, missed, instruction, ACCESS_MODIFIED, modified)
            asks = False
        if hit < 0:
            break
        stat[hit, ACCESSES + kind] += 1
        slot = find(spec, tags, hit, core, line)
        if slot >= 0:
            if use(spec, ages, flags, clock, stat, hit, set_of(spec, hit, core, line), slot):
                useful = hit
            break
        count_miss(stat, columns, counts, missed, hit, kind, instruction)
        hit = spec[hit, NEXT]
    if hit != start:
        bring(spec, inner, cores, tags, ages, flags, clock, stat, memory, start, hit, core, line, 0)
    if kind == WRITE and not spec[start, TLB]:
        slot = find(spec, tags, start, core, line)
        if slot >= 0:
            flags[slot] |= DIRTY | OWNED if spec[start, COHERENT] else DIRTY
    settled = start == first and (hit == start or spec[start, POLICY] != SRRIP)
    level = start
    while level >= 0:
        if spec[level, PREFETCH] == NEXT_LINE and (level != hit or level == useful):
            prefetch(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, core, line + 1)
            settled = False
        if level == hit:
            break
        level = spec[level, NEXT]
    return settled
