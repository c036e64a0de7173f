"""The simulator's loop over a filtered stream (`livepro.engines.stream.filtering`), which lacks what hits.

A plain access is one entry. The words of others come one by one, and are kept until all are there.

A cache has its lines and, behind those of each set, when each was used last, and since when all of them
are new (`room`: one more than `clock` says). A thread had none of them where a chunk began: what it says has
missed may be here from before. What has come in since it has had, so that missed. The order of lines that
hit there is told where the chunk ends.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.cachesim.simulating import D1, I1, LL, misses
from livepro.engines.stream.filtering import (
    ADDRESS,
    BYTES_SHIFT,
    ENTRY,
    FETCH,
    FIRST_MISSED,
    HITS,
    LAST_MISSED,
    MOST_BYTES,
    NO_LINE,
    ORDER,
    PAGE,
    PAGE_SHIFT,
    PLACE_SHIFT,
    SPAN_SHIFT,
    WITHIN_SHIFT,
)
from livepro.events.pointers import borrowed

U = np.uint64
ONE, NUMBER = U(1), U((1 << PLACE_SHIFT) - 1)
_ONE, _STRING, _MASKED, _PACKED, _LANES, _SIZED = range(6)  # `livepro.isa.access.Pattern`
_READ, _WRITE = 3, 6  # columns of what is counted
_DATA = 1
"""Where `clock` has the moment from which on a thread has had all lines of data; in front of it is the
present."""
_PAGE_NUMBER, _WITHIN, _SPAN = U(0xFFFFFFFF), U(PAGE - 1), U(15)
_MISSED = U(LAST_MISSED | FIRST_MISSED)
_PLACE = U(FETCH - 1) & ~U(LAST_MISSED | FIRST_MISSED)
_WORD = U((1 << BYTES_SHIFT) - 1)
_NO_LINE = np.int64(NO_LINE - (1 << 64))
PENDING = 512
"""Words of an instruction, at most: two accesses of 64 lanes are less."""


@njit(nogil=True, cache=True, forceinline=True)
def room(ways):
    """The words of a set."""
    return U(2) * ways + ONE


@njit(nogil=True, cache=True, forceinline=True)
def touch(cache, at, ways, line, clock):
    """Whether `line` is not among the `ways` lines of a set, which begin at `at`; it is then, instead of the
    one that has not been accessed for longest. When each was is behind them: so that nothing need be moved,
    and no way be guessed in which a line is, which is another one each time."""
    clock[0] += 1
    found = ways
    for way in range(ways):
        if cache[at + way] == line:
            found = way
    if found < ways:
        cache[at + ways + found] = clock[0]
        return False
    oldest, when = U(0), cache[at + ways]
    for way in range(ONE, ways):
        if cache[at + ways + way] < when:
            oldest, when = way, cache[at + ways + way]
    cache[at + oldest], cache[at + ways + oldest] = line, clock[0]
    return True


@njit(nogil=True, cache=True, forceinline=True)
def take_missed(cache, at, ways, line, clock):
    """The same of a line of data that has missed in the thread's own cache."""
    if cache[at + U(2) * ways] == clock[_DATA] + 1:
        return True
    oldest, when = U(0), cache[at + ways]
    for way in range(ONE, ways):
        if cache[at + ways + way] < when:
            oldest, when = way, cache[at + ways + way]
    if when > clock[_DATA]:  # there is none from before
        cache[at + U(2) * ways] = clock[_DATA] + 1
        return True
    for way in range(ways):
        if cache[at + way] == line:
            if cache[at + ways + way] > clock[_DATA]:
                return True
            clock[0] += 1
            cache[at + ways + way] = clock[0]
            return False
    clock[0] += 1
    cache[at + oldest], cache[at + ways + oldest] = line, clock[0]
    return True


@njit(nogil=True, cache=True, forceinline=True)
def take_order(cache, lines, clock, bits, sets, ways):
    """Take in which lines of data a thread's cache has (`Lines`), of each set from the one used last."""
    row = U(1 << bits - 3)
    for s in range(sets):
        at = room(ways) * U(s)
        held = U(0)
        while held < ways and lines[(held // row * U(sets) + U(s)) * row + held % row] != _NO_LINE:
            held += ONE
        for n in range(held):
            way = held - ONE - n
            line = -lines[(way // row * U(sets) + U(s)) * row + way % row] >> bits
            where = n  # all of the set are told then, and what there is of it is not in order
            if held < ways:
                where = U(0)
                while cache[at + where] != line:
                    where += ONE
            clock[0] += 1
            cache[at + where], cache[at + ways + where] = line, clock[0]
    clock[_DATA] = clock[0]


@njit(nogil=True, cache=True, forceinline=True)
def data_misses(d1, shapes, address, size, clock):
    """Whether an access misses the first-level cache of data."""
    bits, mask, ways = shapes[D1], shapes[D1 + 1], U(shapes[D1 + 2])
    out = False
    for line in range(address >> bits, ((address + size - 1) >> bits) + 1):
        if touch(d1, U(line & mask) * room(ways), ways, line, clock):
            out = True
    clock[_DATA] = clock[0]  # the thread has had none of them
    return out


@njit(nogil=True, cache=True, forceinline=True)
def access(i, column, address, size, shapes, d1, ll, clock, counts, missed):
    """Simulate an access of instruction `i`, and count its misses."""
    size = min(size, 1 << shapes[D1])
    if data_misses(d1, shapes, address, size, clock):
        counts[i, column + 1] += 1
        missed[column + 1] += 1
        if misses(ll, shapes, LL, address, size):
            counts[i, column + 2] += 1
            missed[column + 2] += 1


@njit(nogil=True, cache=True)
def complete(
    i, a, words, at, access_of, pattern, size_of, kind_of, lanes_of, shapes, d1, ll, clock, counts, missed
):
    """Simulate access `a` of instruction `i`, whose words begin at `at`, and count it; of repeated string
    operands all, element by element."""
    how, size, lanes = pattern[a], size_of[a], lanes_of[a]
    column = _READ if kind_of[a] & 1 else _WRITE
    if how == _STRING:
        begin, end = access_of[i], access_of[i + 1]
        first = at - 2 * (end - 1 - begin)
        distance = words[first + 1] - words[first]
        step = size if distance >= 0 else -size
        turns, turn, within = abs(distance) // size, 0, (1 << shapes[D1]) - 1
        while turn < turns:
            # Elements that begin and end in the lines of those before find them the last ones, and change
            # nothing (but two in the only way of a set).
            more = turns - turn - 1 if shapes[D1 + 2] > 1 or end - begin == 1 else 0
            for operand in range(end - begin):
                column = _READ if kind_of[begin + operand] & 1 else _WRITE
                address = words[first + 2 * operand] + turn * step
                access(i, column, address, size, shapes, d1, ll, clock, counts, missed)
                here = address & within
                left = here // size if step < 0 else (within + 1 - here) // size - 1
                if here + size > within + 1:
                    left = 0
                more = min(more, left)
            for operand in range(end - begin):
                counts[i, _READ if kind_of[begin + operand] & 1 else _WRITE] += 1 + more
            turn += 1 + more
    elif how == _SIZED:
        counts[i, column] += 1
        access(i, column, words[at], words[at + 1], shapes, d1, ll, clock, counts, missed)
    elif how == _LANES:
        for lane in range(lanes):
            if words[at] >> lane & 1:
                counts[i, column] += 1
                access(i, column, words[at + 1 + lane], size, shapes, d1, ll, clock, counts, missed)
    elif how == _PACKED:
        active = 0
        for lane in range(lanes):
            active += words[at + 1] >> lane & 1
        if active:
            counts[i, column] += 1
            access(i, column, words[at], active * size, shapes, d1, ll, clock, counts, missed)
    else:
        begun = -1
        for lane in range(lanes + 1):
            if lane < lanes and words[at + 1] >> lane & 1:
                if begun < 0:
                    begun = lane
            elif begun >= 0:
                counts[i, column] += 1
                length = (lane - begun) * size
                access(i, column, words[at] + begun * size, length, shapes, d1, ll, clock, counts, missed)
                begun = -1


@njit(nogil=True, cache=True, forceinline=True)
def words_in(pattern, lanes):
    """The words of an access."""
    return 1 if pattern == _ONE else 1 + lanes if pattern == _LANES else 2


@njit(nogil=True, cache=True, forceinline=True)
def access_at(begin, end, place, pattern, lanes_of):
    """Which access of a block, from `begin` to `end`, a word belongs to."""
    behind = U(1)
    for a in range(begin, end):
        behind += U(words_in(pattern[a], lanes_of[a]))
        if place < behind:
            return a
    return end - ONE


@njit(nogil=True, cache=True, forceinline=True)
def take_word(
    begin, end, place, value, access_of, pattern, size_of, kind_of, lanes_of, owner_of, pending, shapes, d1,
    ll, clock, counts, missed,
):  # fmt: skip
    """Take one word of a block whose accesses, from `begin` to `end`, are not all plain."""
    a, word, last, belongs, before = begin, 1, 1, -1, 1
    while a < end:
        if owner_of[a] != belongs:
            belongs, before = owner_of[a], word  # where the instruction's words begin
        last = word + words_in(pattern[a], lanes_of[a])
        if place < last:
            break
        word = last
        a += 1
    i = owner_of[a]
    if pattern[a] == _ONE:
        column = _READ if kind_of[a] & 1 else _WRITE
        access(i, column, value & ADDRESS, size_of[a], shapes, d1, ll, clock, counts, missed)
        return
    pending[place - before] = value
    if place == last - 1 and (pattern[a] != _STRING or a + 1 == access_of[i + 1]):
        complete(
            i, a, pending, word - before, access_of, pattern, size_of, kind_of, lanes_of,
            shapes, d1, ll, clock, counts, missed,
        )  # fmt: skip


@njit(nogil=True, cache=True)
def simulate_entries(
    entries, first, words_of, address_of, nbytes, access_of, pattern, size_of, kind_of, lanes_of, owner_of,
    pending, shapes, i1, d1, ll, clock, counts, missed,
):  # fmt: skip
    """Simulate the entries of a thread, whose words that wait for others are `pending`; `StaticTables` says
    what else it is given."""
    entries, first, words_of, access_of = (
        borrowed(entries),
        borrowed(first),
        borrowed(words_of),
        borrowed(access_of),
    )
    address_of, nbytes, pattern, size_of = (
        borrowed(address_of),
        borrowed(nbytes),
        borrowed(pattern),
        borrowed(size_of),
    )
    kind_of, lanes_of, owner_of, pending = (
        borrowed(kind_of),
        borrowed(lanes_of),
        borrowed(owner_of),
        borrowed(pending),
    )
    shapes, i1, d1, ll = borrowed(shapes), borrowed(i1), borrowed(d1), borrowed(ll)
    clock, counts, missed = borrowed(clock), borrowed(counts), borrowed(missed)
    i_bits, i_mask, i_ways = shapes[I1], shapes[I1 + 1], U(shapes[I1 + 2])
    d_bits, d_mask, d_ways = shapes[D1], shapes[D1 + 1], U(shapes[D1 + 2])
    i_room, d_room = room(i_ways), room(d_ways)
    l_bits, l_mask, l_ways = shapes[LL], shapes[LL + 1], U(shapes[LL + 2])
    width = 1 << d_bits
    clock[_DATA] = clock[0]
    at, behind = U(0), U(len(entries))
    while at < behind:
        head, value = U(entries[at]), entries[at + ONE]
        at += U(ENTRY)
        number, place = head & NUMBER, head >> U(PLACE_SHIFT)
        if place & U(ORDER):
            told = U(value & ADDRESS)
            take_order(d1, entries[at : at + told], clock, d_bits, d_mask + 1, d_ways)
            at += told
            continue
        if place & U(FETCH):
            where = U(value)
            # (Modulo the bytes that are numbered: no two lines are alike.)
            begin = np.int64((where & _PAGE_NUMBER) << U(PAGE_SHIFT) | where >> U(WITHIN_SHIFT) & _WITHIN)
            line = begin >> i_bits
            last = begin + np.int64(where >> U(SPAN_SHIFT) & _SPAN) >> i_bits
            away = touch(i1, U(line & i_mask) * i_room, i_ways, line, clock)
            if line != last and touch(i1, U(last & i_mask) * i_room, i_ways, last, clock):
                away = True
            if away:
                i = U(first[number]) + (place & _PLACE)
                address, size = address_of[i], nbytes[i]
                counts[i, 1] += 1
                missed[1] += 1
                if misses(ll, shapes, LL, address, size):
                    counts[i, 2] += 1
                    missed[2] += 1
            continue
        first_missed, last_missed = place & U(FIRST_MISSED) != U(0), place & U(LAST_MISSED) != U(0)
        block = U(first[number])
        begin, end = U(access_of[block]), U(access_of[U(first[number + ONE])])
        if place & _MISSED:
            address, a = value & ADDRESS, begin + (place & _PLACE) - ONE
            if place & U(HITS):
                a = access_at(begin, end, place & _WORD, pattern, lanes_of)
                size = np.int64(place >> U(BYTES_SHIFT) & U(MOST_BYTES - 1)) + 1
            else:
                if U(words_of[number]) != ONE + end - begin:
                    a = access_at(begin, end, place & _PLACE, pattern, lanes_of)
                size = np.int64(min(size_of[a], width))
            line, last = address >> d_bits, (address + size - 1) >> d_bits
            away = first_missed and take_missed(d1, U(line & d_mask) * d_room, d_ways, line, clock)
            if last_missed and take_missed(d1, U(last & d_mask) * d_room, d_ways, last, clock):
                away = True
            if not away:
                continue
            i, column = U(owner_of[a]), _READ if kind_of[a] & 1 else _WRITE
            counts[i, column + 1] += 1
            missed[column + 1] += 1
            line = address >> l_bits
            if ll[U(line & l_mask) * l_ways] == line and (address + size - 1) >> l_bits == line:
                continue  # as most
            if misses(ll, shapes, LL, address, size):
                counts[i, column + 2] += 1
                missed[column + 2] += 1
            continue
        if place & U(HITS):
            a = access_at(begin, end, place & _WORD, pattern, lanes_of)
            column = _READ if kind_of[a] & 1 else _WRITE
            counts[U(owner_of[a]), column] += np.int64(U(value) & U(ADDRESS))
            continue
        take_word(
            np.int64(begin), np.int64(end), np.int64(place), value, access_of, pattern, size_of, kind_of,
            lanes_of, owner_of, pending, shapes, d1, ll, clock, counts, missed,
        )  # fmt: skip
