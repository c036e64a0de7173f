"""What an access does to the levels of a hierarchy: compiled, all of their state in arrays.

`spec` has a row for each level, its columns below. Lines are in `tags` (-1: none), each with a word of
`ages`, that its set's replacement reads, and `flags`. `inner[l, m]` tells whether what misses in `m` goes to
`l` sooner or later. `stat` has a row of counters for each level.

Under LRU and FIFO the age is the time of the last use, or of the filling. Tree-PLRU keeps the bits of a
set's tree in the age of its first way: that of node n points to the half that is replaced next (1: the
right one), the children of n are 2n and 2n+1, the ways the leaves. SRRIP is that of Jaleel et al., "High
Performance Cache Replacement Using Re-Reference Interval Prediction" (ISCA 2010), of 2 bits and hit priority.
What is random comes from the generator that ISO C gives as an example of rand.
"""

# mypy: ignore-errors

from __future__ import annotations

from numba import njit

BASE, STEP, SETS, MASK, WAYS, POLICY, NEXT, INCLUSION, THROUGH, PREFETCH, TLB, COHERENT = range(12)
"""Columns of `spec`: the first slot, the slots from one core to the next (0: shared), sets, sets minus one
where they are a power of two (else -1), ways, policy, next level (-1: memory), inclusion, whether it writes
through, its prefetcher, whether it is a TLB, whether it is kept coherent with other cores' (`coherence`)."""
COLUMNS = COHERENT + 1

LRU, PLRU, FIFO, RANDOM, SRRIP = range(5)
NEITHER, INCLUSIVE, EXCLUSIVE = range(3)
NO_PREFETCH, NEXT_LINE, STRIDE = range(3)
FETCH, READ, WRITE = range(3)
"""Kinds of accesses."""

ACCESSES, MISSES, PREFETCHED, USEFUL, WRITTEN_BACK, INVALIDATED, TAKEN = 0, 3, 6, 7, 8, 9, 10
"""Columns of `stat`: accesses and misses by kind; lines that a prefetcher brought, and of those the ones that
were used; lines given to the next level since they had been written; lines lost for inclusion's sake, and to
another core that wrote to them."""
STATS = TAKEN + 1
FROM_MEMORY, TO_MEMORY, MODIFIED = range(3)
"""Of `memory`: lines read, lines or words written; lines asked for that another core had modified."""

DIRTY, EARLY, OWNED = 1, 2, 4
"""Flags of a line: it has been written; a prefetcher brought it, and nothing has used it yet; no other core
has it (of a coherent first level)."""
DISTANT, LONG = 3, 2
"""SRRIP: what is replaced, and what is new."""


@njit(nogil=True, cache=True, forceinline=True)
def set_of(spec, level, core, line):
    """The first slot of the set that `line` belongs to."""
    mask = spec[level, MASK]
    index = line & mask if mask >= 0 else line % spec[level, SETS]
    return spec[level, BASE] + core * spec[level, STEP] + index * spec[level, WAYS]


@njit(nogil=True, cache=True, forceinline=True)
def find(spec, tags, level, core, line):
    """The slot of a line, -1 if it is not there."""
    first = set_of(spec, level, core, line)
    for slot in range(first, first + spec[level, WAYS]):
        if tags[slot] == line:
            return slot
    return -1


@njit(nogil=True, cache=True, forceinline=True)
def point_away(ages, first, ways, way):
    """Have the tree of a set point away from one of its ways."""
    node, bits = way + ways, ages[first]
    while node > 1:
        parent = node >> 1
        bits = bits & ~(1 << parent) if node & 1 else bits | 1 << parent
        node = parent
    ages[first] = bits


@njit(nogil=True, cache=True, forceinline=True)
def touch(spec, ages, clock, level, first, slot):
    """A line is used that is there."""
    policy = spec[level, POLICY]
    if policy == LRU:
        clock[0] += 1
        ages[slot] = clock[0]
    elif policy == PLRU:
        point_away(ages, first, spec[level, WAYS], slot - first)
    elif policy == SRRIP:
        ages[slot] = 0


@njit(nogil=True, cache=True, forceinline=True)
def use(spec, ages, flags, clock, stat, level, first, slot):
    """A line is asked for that is there; whether it is the first use of what a prefetcher brought."""
    touch(spec, ages, clock, level, first, slot)
    early = flags[slot] & EARLY != 0
    if early:
        flags[slot] &= ~EARLY
        stat[level, USEFUL] += 1
    return early


@njit(nogil=True, cache=True)
def victim(spec, tags, ages, clock, level, first):
    """The slot of a set that is filled next."""
    policy, ways = spec[level, POLICY], spec[level, WAYS]
    for slot in range(first, first + ways):
        if tags[slot] < 0:
            return slot
    if policy == PLRU:
        node = 1
        while node < ways:
            node = 2 * node + (ages[first] >> node & 1)
        return first + node - ways
    if policy == RANDOM:
        clock[1] = (clock[1] * 1103515245 + 12345) & 0x7FFFFFFF
        return first + (clock[1] >> 16) % ways
    if policy == SRRIP:
        while True:
            for slot in range(first, first + ways):
                if ages[slot] == DISTANT:
                    return slot
            for slot in range(first, first + ways):
                ages[slot] += 1
    oldest = first
    for slot in range(first + 1, first + ways):
        if ages[slot] < ages[oldest]:
            oldest = slot
    return oldest


@njit(nogil=True, cache=True)
def place(spec, tags, ages, flags, clock, level, first, slot, line, flag):
    """Fill a slot."""
    policy = spec[level, POLICY]
    tags[slot], flags[slot] = line, flag
    if policy in (LRU, FIFO):
        clock[0] += 1
        ages[slot] = clock[0]
    elif policy == PLRU:
        point_away(ages, first, spec[level, WAYS], slot - first)
    elif policy == SRRIP:
        ages[slot] = LONG


@njit(nogil=True, cache=True)
def take_out(spec, tags, flags, level, core, line):
    """Remove a line; its flags, -1 if it was not there."""
    slot = find(spec, tags, level, core, line)
    if slot < 0:
        return -1
    tags[slot] = -1
    return flags[slot]


@njit(nogil=True, cache=True)
def put(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, core, line, flag):
    """Have a level hold a line. What it loses for that goes to the next level, if it must, and so on."""
    while True:
        slot = find(spec, tags, level, core, line)
        if slot >= 0:
            flags[slot] |= flag & DIRTY
            return
        first = set_of(spec, level, core, line)
        slot = victim(spec, tags, ages, clock, level, first)
        lost, lost_flags = tags[slot], flags[slot]
        place(spec, tags, ages, flags, clock, level, first, slot, line, flag)
        if lost < 0:
            return
        written = lost_flags & DIRTY
        if spec[level, INCLUSION] == INCLUSIVE:
            for other in range(len(spec)):
                if inner[level, other]:
                    alone = spec[level, STEP] != 0
                    for each in range(core if alone else 0, core + 1 if alone else cores):
                        found = take_out(spec, tags, flags, other, each, lost)
                        if found >= 0:
                            stat[other, INVALIDATED] += 1
                            written |= found & DIRTY
        following = spec[level, NEXT]
        if following < 0:
            if written:
                stat[level, WRITTEN_BACK] += 1
                memory[TO_MEMORY] += 1
            return
        if written:
            stat[level, WRITTEN_BACK] += 1
        elif spec[following, INCLUSION] != EXCLUSIVE:
            return
        level, line, flag = following, lost, written


@njit(nogil=True, cache=True)
def bring(spec, inner, cores, tags, ages, flags, clock, stat, memory, start, hit, core, line, flag):
    """Bring a line that level `hit` has (-1: memory) to all levels before it, down to `start`."""
    if hit < 0:
        if not spec[start, TLB]:
            memory[FROM_MEMORY] += 1
    elif spec[hit, INCLUSION] == EXCLUSIVE:
        flag |= take_out(spec, tags, flags, hit, core, line) & DIRTY
    depth, level = 0, start
    while level != hit:
        depth += 1
        level = spec[level, NEXT]
    while depth > 0:
        depth -= 1
        level = start
        for _ in range(depth):
            level = spec[level, NEXT]
        if depth == 0:
            put(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, core, line, flag)
        elif spec[level, INCLUSION] != EXCLUSIVE:
            put(spec, inner, cores, tags, ages, flags, clock, stat, memory, level, core, line, 0)
