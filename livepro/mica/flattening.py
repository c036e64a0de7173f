"""From a stream's records to arrays of events: one event for each instruction and repetition executed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

EVENTS, OPERANDS, BRANCHES, CUTS, HELD = range(5)
"""What `out` says: how many of each there are; whether the last record must wait for the next one."""
AT, INSTRUCTION, END, EXECUTED, TURN, WHOLE = range(6)
"""The cursor: the word to be read next; the instruction under way (-1: none), the one behind the record, and
behind those executed to their ends; the repetition to be done next; whether the whole block was executed."""
RETIRED, SIZE, ALL = range(3)
"""The counters: instructions retired in the interval, the size of intervals (0: none), all retired."""
READ1, READ2, WRITE = range(3)
"""Slots of operands."""
ROOM = 80
"""Operands that an instruction may have: 64 lanes and more."""


@njit(nogil=True, cache=True)
def flatten(  # type: ignore[no-untyped-def]
    words, cursor, final, mica, counters, first, words_of, address, nbytes, flow, branch_flow,
    access_of, pattern, size_of, kind_of, lanes_of,
    instructions, operands_at, addresses, sizes, slots, branches, taken, cuts, out,
):  # fmt: skip
    """Fill the arrays of events from `words`, up to their ends. True if there is more to do.

    An event e is of the instruction `instructions[e]` and has the memory operands from `operands_at[e]` to
    `operands_at[e + 1]`, each with address, size and slot, reads first. `branches` are the conditional
    branches, with whether each was taken. A row of `cuts` is the end of an interval: events, branches, and
    instructions retired in it. A record whose branch's outcome is in the next one is held back unless
    `final`.
    """
    n = len(words)
    at, i, end, executed, turn, whole = cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[5]
    retired, interval, total = counters[0], counters[1], counters[2]
    most_events, most_operands = len(instructions), len(addresses)
    most_branches, most_cuts = len(branches), len(cuts)
    e, o, b, c = 0, 0, 0, 0
    operands_at[0] = 0
    more = False
    out[HELD] = 0
    while True:
        if i < 0:
            if at >= n:
                break
            head = words[at]
            flags = head >> 32 & 0xFF
            if flags & 4:
                at += 2
                continue
            number = head & 0xFFFFFFFF
            begin = first[number]
            end = first[number + 1]
            executed = end
            whole = 1
            if flags & 1:
                executed = begin + (head >> 40)
                end = executed + (flags >> 1 & 1)
                whole = 0
            elif flow[end - 1] == branch_flow and not final and at + words_of[number] >= n:
                out[HELD] = 1
                break
            at += 1
            if begin == end:
                continue
            i = begin
            turn = 0
        # Instructions of the record.
        while i < end:
            if e >= most_events or o + ROOM > most_operands or b >= most_branches or c >= most_cuts:
                more = True
                break
            a0, a1 = access_of[i], access_of[i + 1]
            cut = False
            if a0 < a1 and pattern[a0] == 1:
                distance = words[at + 1] - words[at]
                size = size_of[a0]
                step = size if distance >= 0 else -size
                turns = abs(distance) // size
                done = i < executed
                if turns == 0:
                    if mica:
                        for k in range(a1 - a0):
                            addresses[o] = words[at + 2 * k]
                            sizes[o] = size
                            slots[o] = WRITE if kind_of[a0 + k] == 2 else (READ2 if k else READ1)
                            o += 1
                    instructions[e] = i
                    e += 1
                    operands_at[e] = o
                    if not mica:
                        retired += 1
                        total += 1
                        cut = True
                    turn = 1
                else:
                    while turn < turns:
                        if e >= most_events or o + ROOM > most_operands:
                            more = True
                            break
                        for k in range(a1 - a0):
                            addresses[o] = words[at + 2 * k] + turn * step
                            sizes[o] = size
                            slots[o] = WRITE if kind_of[a0 + k] == 2 else (READ2 if k else READ1)
                            o += 1
                        instructions[e] = i
                        e += 1
                        operands_at[e] = o
                        turn += 1
                        if done and turn == (1 if mica else turns):
                            retired += 1
                            total += 1
                            if retired == interval:
                                cut = True
                                if mica and turn < turns:
                                    cuts[c, 0], cuts[c, 1], cuts[c, 2] = e, b, retired
                                    c += 1
                                    retired = 0
                                    cut = False
                                    if c >= most_cuts:
                                        more = True
                                        break
                    if more:
                        break
                at += 2 * (a1 - a0)
                turn = 0
            else:
                reads = 0
                for turn_kind in range(2):  # reads first
                    here = at
                    writes = 0
                    for a in range(a0, a1):
                        how, size, lanes, does = pattern[a], size_of[a], lanes_of[a], kind_of[a]
                        length = 1 if how == 0 else (1 + lanes if how == 4 else 2)
                        if does & (1 + turn_kind):
                            if turn_kind == 0:
                                slot = READ1 if reads == 0 else READ2
                                reads += 1
                                skipped = mica and reads > 2
                            else:
                                slot = WRITE
                                writes += 1
                                skipped = mica and writes > 1
                            if skipped:
                                pass
                            elif how == 0:
                                addresses[o], sizes[o], slots[o] = words[here], size, slot
                                o += 1
                            elif how == 5:
                                addresses[o], sizes[o], slots[o] = words[here], words[here + 1], slot
                                o += 1
                            elif how == 4:
                                for lane in range(lanes):
                                    if words[here] >> lane & 1:
                                        addresses[o], sizes[o], slots[o] = words[here + 1 + lane], size, slot
                                        o += 1
                            elif how == 3:
                                active = 0
                                for lane in range(lanes):
                                    active += words[here + 1] >> lane & 1
                                if active:
                                    addresses[o], sizes[o], slots[o] = words[here], active * size, slot
                                    o += 1
                            else:
                                begun = -1
                                for lane in range(lanes + 1):
                                    if lane < lanes and words[here + 1] >> lane & 1:
                                        if begun < 0:
                                            begun = lane
                                    elif begun >= 0:
                                        addresses[o] = words[here] + begun * size
                                        sizes[o] = (lane - begun) * size
                                        slots[o] = slot
                                        o += 1
                                        begun = -1
                        here += length
                at = here
                if mica and reads > 1:  # the original knows one size of reads
                    read = -1
                    for k in range(operands_at[e], o):
                        if slots[k] == READ1 and read < 0:
                            read = sizes[k]
                        elif slots[k] == READ2 and read >= 0:
                            sizes[k] = read
                instructions[e] = i
                e += 1
                operands_at[e] = o
                retired += 1
                total += 1
                cut = True
            i += 1
            if i == end and whole and flow[i - 1] == branch_flow and at < n:
                head = words[at]
                goes = words[at + 1] if head >> 32 & 4 else address[first[head & 4294967295]]
                branches[b] = i - 1
                taken[b] = goes != address[i - 1] + nbytes[i - 1]
                b += 1
            if cut and retired == interval:
                cuts[c, 0], cuts[c, 1], cuts[c, 2] = e, b, retired
                c += 1
                retired = 0
        if more:
            break
        i = -1
    cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[5] = at, i, end, executed, turn, whole
    counters[0], counters[2] = retired, total
    out[EVENTS], out[OPERANDS], out[BRANCHES], out[CUTS] = e, o, b, c
    return more


class Events:
    """The arrays that `flatten` fills."""

    def __init__(self, room: int = 1 << 15) -> None:
        self.instructions = np.zeros(room, np.int32)
        self.operands_at = np.zeros(room + 1, np.int32)
        self.addresses = np.zeros(room * 2 + ROOM, np.int64)
        self.sizes = np.zeros(room * 2 + ROOM, np.int64)
        self.slots = np.zeros(room * 2 + ROOM, np.uint8)
        self.branches = np.zeros(room, np.int32)
        self.taken = np.zeros(room, np.uint8)
        self.cuts = np.zeros((256, 3), np.int64)
        self.out = np.zeros(5, np.int64)

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """In the order in which `flatten` takes them."""
        return (
            *(self.instructions, self.operands_at, self.addresses, self.sizes, self.slots),
            *(self.branches, self.taken, self.cuts, self.out),
        )
