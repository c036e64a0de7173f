"""From a stream's records to arrays of plain events, a part at a time.

The twin in plain Python is `livepro.events.replay`. MICA's kernel of this name counts operands and
cuts intervals; a trace needs the order of accesses, and where control goes on behind a signal.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.engines.stream import COUNT_SHIFT, FLAGS, FLAGS_SHIFT, INTERRUPTED, NUMBER, PARTIAL
from livepro.engines.stream import GOES_ON as LEADS

INSTRUCTION, LOAD, STORE, MODIFIED, GOES_ON, AGAIN = range(6)
"""Kinds of events. MODIFIED is the store of an instruction that has just loaded the same bytes; GOES_ON
has the address that what has been executed leads to; AGAIN is a repeated string instruction that
was interrupted: its accesses follow, and it is executed (as INSTRUCTION) later."""

AT, INDEX, END, EXECUTED, TURN, POSITION = range(6)
"""The cursor: the next word; the instruction under way (-1: none), the one behind the record, and behind
those executed to their ends; the repetition to be done next; instructions executed so far."""

DONE, FULL, LIMIT = range(3)
"""Why `flatten` returned: no words are left, no room is, or as many instructions were executed."""

ROOM = 1 << 15
_MOST = 140  # events of an instruction that is not repeated: 64 lanes, loaded and stored, and some


@njit(nogil=True, cache=True)
def skip(words, cursor, limit, first, words_of):
    """Leave out whole records as long as `limit` instructions are not exceeded."""
    at, position, n = cursor[0], cursor[5], len(words)
    if cursor[1] >= 0:
        return
    while at < n:
        head = words[at]
        flags = head >> FLAGS_SHIFT & FLAGS
        if flags & LEADS:
            at += 2
            continue
        if flags & PARTIAL:
            break
        number = head & NUMBER
        count = first[number + 1] - first[number]
        if position + count > limit:
            break
        position += count
        at += words_of[number]
    cursor[0], cursor[5] = at, position


@njit(nogil=True, cache=True)
def flatten(
    words, cursor, limit, first, address, nbytes, access_of, pattern, size_of, kind_of, lanes_of,
    what, index, where, size, out,
):  # fmt: skip
    """Fill the arrays of events; `out[0]` is how many there are. Returns DONE, FULL or LIMIT."""
    at, i, end, executed, turn, position = cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[5]
    n, e, room = len(words), 0, len(what)
    why = DONE
    while True:
        if i < 0:
            if at >= n:
                break
            head = words[at]
            flags = head >> FLAGS_SHIFT & FLAGS
            if flags & LEADS:
                if e >= room:
                    why = FULL
                    break
                what[e], index[e], where[e], size[e] = GOES_ON, -1, words[at + 1], 0
                e += 1
                at += 2
                continue
            number = head & NUMBER
            begin = first[number]
            end = first[number + 1]
            executed = end
            if flags & PARTIAL:
                executed = begin + (head >> COUNT_SHIFT)
                end = executed + (1 if flags & INTERRUPTED else 0)
            at += 1
            if begin == end:
                continue
            i = begin
            turn = 0
        if position >= limit:
            why = LIMIT
            if e < room:  # the branch before this leads here
                what[e], index[e], where[e], size[e] = GOES_ON, -1, address[i], 0
                e += 1
            break
        if e + _MOST > room:
            why = FULL
            break
        a0, a1 = access_of[i], access_of[i + 1]
        if turn == 0:
            what[e] = INSTRUCTION if i < executed else AGAIN
            index[e], where[e], size[e] = i, address[i], nbytes[i]
            e += 1
        if a0 < a1 and pattern[a0] == 1:
            distance = words[at + 1] - words[at]
            length = size_of[a0]
            step = length if distance >= 0 else -length
            turns = abs(distance) // length
            while turn < turns and e + 4 <= room:
                for a in range(a0, a1):
                    what[e] = STORE if kind_of[a] == 2 else LOAD
                    index[e], where[e], size[e] = i, words[at + 2 * (a - a0)] + turn * step, length
                    e += 1
                turn += 1
            if turn < turns:
                why = FULL
                break
            at += 2 * (a1 - a0)
            turn = 0
        else:
            for a in range(a0, a1):
                how, length, lanes, does = pattern[a], size_of[a], lanes_of[a], kind_of[a]
                for store in range(1, 3):
                    if not does & store:
                        continue
                    kind = store if store == 1 or not does & 1 else 3
                    if how == 0:
                        what[e], index[e], where[e], size[e] = kind, i, words[at], length
                        e += 1
                    elif how == 5:
                        what[e], index[e], where[e], size[e] = kind, i, words[at], words[at + 1]
                        e += 1
                    elif how == 4:
                        for lane in range(lanes):
                            if words[at] >> lane & 1:
                                what[e], index[e], where[e], size[e] = kind, i, words[at + 1 + lane], length
                                e += 1
                    elif how == 3:
                        active = 0
                        for lane in range(lanes):
                            active += words[at + 1] >> lane & 1
                        if active:
                            what[e], index[e], where[e], size[e] = kind, i, words[at], active * length
                            e += 1
                    else:
                        begun = -1
                        for lane in range(lanes + 1):
                            if lane < lanes and words[at + 1] >> lane & 1:
                                if begun < 0:
                                    begun = lane
                            elif begun >= 0:
                                what[e], index[e] = kind, i
                                where[e], size[e] = words[at] + begun * length, (lane - begun) * length
                                e += 1
                                begun = -1
                at += 1 if how == 0 else (1 + lanes if how == 4 else 2)
        if i < executed:
            position += 1
        i += 1
        if i == end:
            i = -1
    cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[5] = at, i, end, executed, turn, position
    out[0] = e
    return why


class Events:
    """The arrays that `flatten` fills: `what` (uint8), `index` (int32, of the instruction), `where` (int64,
    address), `size` (int64, bytes); the first `count` entries count."""

    def __init__(self, room: int = ROOM) -> None:
        self.what = np.zeros(room, np.uint8)
        self.index = np.zeros(room, np.int32)
        self.where = np.zeros(room, np.int64)
        self.size = np.zeros(room, np.int64)
        self._out = np.zeros(1, np.int64)
        self.count = 0

    def fill(self, words, cursor, limit, tables):
        """Flatten the next of `words` (int64) up to `limit` instructions; why it stopped."""
        why = flatten(
            *(words, cursor, limit, tables.first, tables.address.view(np.int64), tables.bytes),
            *(tables.access, tables.pattern, tables.size, tables.kind, tables.lanes),
            *(self.what, self.index, self.where, self.size, self._out),
        )
        self.count = int(self._out[0])
        return why


def cursor():
    """A cursor at the beginning of a thread."""
    return np.array([0, -1, 0, 0, 0, 0], np.int64)
