"""MESI between the private caches of cores: what one writes, no other keeps, and what one has modified, it
writes back before another gets it (Papamarcos and Patel, "A Low-Overhead Coherence Solution for
Multiprocessors with Private Cache Memories", ISCA 1984).

The states are not kept as such: a line is modified if it is `DIRTY`, exclusive or shared by whether another
core has it, which is looked up. `OWNED` notes of a line in a first-level cache that no other has it.
"""

# mypy: ignore-errors

from __future__ import annotations

from numba import njit

from livepro.cachesim.hierarchy.levels import (
    COHERENT,
    DIRTY,
    MODIFIED,
    NEXT,
    OWNED,
    TAKEN,
    TO_MEMORY,
    WRITTEN_BACK,
    find,
    put,
    take_out,
)


@njit(nogil=True, cache=True)
def write_back(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, core, line):
    """A core gives what it has modified in a private level (-1: in none) to what is behind its private ones:
    whether there was anything, since somebody has asked for it."""
    if level < 0:
        return False
    memory[MODIFIED] += 1
    stat[level, WRITTEN_BACK] += 1
    while level >= 0 and spec[level, COHERENT]:
        level = spec[level, NEXT]
    if level < 0:
        memory[TO_MEMORY] += 1
    else:
        put(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, core, line, DIRTY)
    return True


@njit(nogil=True, cache=True)
def claim(spec, inner, cores, tags, ages, flags, clock, stat, memory, core, line):
    """A core is about to write to a line: the others lose it. How many had it; how many had modified it."""
    losers = modified = 0
    for other in range(cores):
        if other == core:
            continue
        had, dirty_in = False, -1
        for level in range(len(spec)):
            if spec[level, COHERENT]:
                found = take_out(spec, tags, flags, level, other, line)
                if found >= 0:
                    had = True
                    stat[level, TAKEN] += 1
                    if found & DIRTY and dirty_in < 0:
                        dirty_in = level
        losers += had
        modified += write_back(
            spec, inner, cores, tags, ages, flags, clock, stat, memory, dirty_in, other, line
        )  # fmt: skip
    return losers, modified


@njit(nogil=True, cache=True)
def share(spec, inner, cores, tags, ages, flags, clock, stat, memory, core, line):
    """A core is about to have a line that it does not write to: others may keep it, but not as their own. How
    many had modified it."""
    modified = 0
    for other in range(cores):
        if other == core:
            continue
        dirty_in = -1
        for level in range(len(spec)):
            if spec[level, COHERENT]:
                slot = find(spec, tags, level, other, line)
                if slot >= 0:
                    if flags[slot] & DIRTY and dirty_in < 0:
                        dirty_in = level
                    flags[slot] &= ~(DIRTY | OWNED)
        modified += write_back(
            spec, inner, cores, tags, ages, flags, clock, stat, memory, dirty_in, other, line
        )  # fmt: skip
    return modified
