"""From a stream's records to spans of events: one event for each instruction and repetition executed.

A block that was executed whole and whose accesses are plain is one span: its operands are copied by a static
list, nothing is done for each of its instructions. Everything else is a span for each event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream import COUNT_SHIFT, FLAGS, FLAGS_SHIFT, GOES_ON, NUMBER, PARTIAL
from livepro.events.spans.operand import READ1, READ2, REWRITE, WRITE, described, size_of, slot_of

SPANS, OPERANDS, BRANCHES, CUTS, HELD, EVENTS = range(6)
"""What `out` says: how many of each there are; whether the last record must wait for the next one."""
AT, INSTRUCTION, END, EXECUTED, TURN, WHOLE = range(6)
"""The cursor: the word to be read next; the instruction under way (-1: none), the one behind the record, and
behind those executed to their ends; the repetition to be done next; whether the whole block was executed."""
RETIRED, SIZE, TOTAL = range(3)
"""The counters: instructions retired in the interval, the size of intervals (0: none), all retired."""
ROOM = 80
"""Operands that an instruction may have: 64 lanes and more."""


U = np.uint64
ONE = U(1)
_NEVER = 1 << 62  # more instructions than are executed


@njit(nogil=True, cache=True)
def flatten_whole(  # type: ignore[no-untyped-def]
    words, upto, at, retired, interval, first, words_of, address, nbytes,
    flow, noted, plain, listed_at, listed_words, listed,
    begins, ends, marks, operands_at, addresses, operands, branches, taken, targets, s, o, b,
):  # fmt: skip
    """The part of `flatten` that most records take: those of plain blocks executed whole, within an interval
    and with another record behind. Returns where it has come to: the word, instructions retired in the
    interval, spans, operands, branches.

    Indices are unsigned, or numba asks of each whether it is negative."""
    most_operands, most_spans, behind = U(len(addresses)), U(len(begins)), U(len(words) - 1)
    at, upto, s, o, b = U(at), U(upto), U(s), U(o), U(b)
    while at < upto and s < most_spans:
        head = words[at]
        number = U(head)
        if head >> FLAGS_SHIFT & FLAGS or not plain[number]:
            break
        begin, end = first[number], first[number + ONE]
        next_at = at + U(words_of[number])
        k, last = U(listed_at[number]), U(listed_at[number + ONE])
        if next_at > behind or retired + (end - begin) >= interval or o + (last - k) > most_operands:
            break
        while k < last:
            addresses[o] = words[at + U(listed_words[k])]
            operands[o] = listed[k]
            o += ONE
            k += ONE
        begins[s], ends[s], marks[s] = begin, end, 1
        s += ONE
        operands_at[s] = o
        retired += end - begin
        at = next_at
        i = U(end - 1)
        if noted[flow[i]]:
            following = words[at]
            elsewhere = following >> FLAGS_SHIFT & GOES_ON
            goes = words[at + ONE] if elsewhere else address[U(first[U(following & NUMBER)])]
            branches[b] = end - 1
            taken[b] = goes != address[i] + nbytes[i]
            targets[b] = goes
            b += ONE
    return np.int64(at), retired, np.int64(s), np.int64(o), np.int64(b)


@njit(nogil=True, cache=True)
def flatten(  # type: ignore[no-untyped-def]
    words, upto, cursor, final, mica, counters, first, words_of, address, nbytes, flow, noted,
    access_of, pattern, bytes_of, kind_of, lanes_of,
    plain, listed_at, listed_words, listed,
    begins, ends, marks, operands_at, addresses, operands, branches, taken, targets, cuts, out,
):  # fmt: skip
    """Fill the arrays of spans from the records that begin before the word `upto`, behind what `out` says is
    in them, up to their ends. True if there is more to do.

    A span s has an event for each instruction from `begins[s]` to `ends[s]`, and the memory operands from
    `operands_at[s]` to `operands_at[s + 1]`, each with its address and what `operand.described` tells,
    in the order of the instructions, an instruction's reads first. It is marked where it executes
    instructions to their ends (a repeated one at its first turn). `branches` are those that are `noted`, with
    where each went and whether it was taken. A row of `cuts` is the end of an interval: spans, branches,
    instructions retired in it, events. A record whose branch's outcome is in the next one is held back unless
    `final`. `plain`, `listed_at`, `listed_words` and `listed` are `Listing`'s.
    """
    behind = len(words) - 1
    at, i, end, executed, turn, whole = cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[5]
    retired, interval, total = counters[0], counters[1], counters[2]
    most_spans, most_operands = len(begins), len(addresses)
    most_branches, most_cuts = len(branches), len(cuts)
    s, o, b, c, e = out[SPANS], out[OPERANDS], out[BRANCHES], out[CUTS], out[EVENTS]
    more = False
    out[HELD] = 0
    while True:
        if i < 0:
            before = retired
            at, retired, s, o, b = flatten_whole(
                words, upto, at, retired, interval if interval else _NEVER, first, words_of, address, nbytes,
                flow, noted, plain, listed_at, listed_words, listed,
                begins, ends, marks, operands_at, addresses, operands, branches, taken, targets, s, o, b,
            )  # fmt: skip
            e += retired - before
            total += retired - before
            if at >= upto:
                break
            head = words[at]
            flags = head >> FLAGS_SHIFT & FLAGS
            if flags & GOES_ON:
                at += 2
                continue
            number = head & NUMBER
            begin = first[number]
            end = first[number + 1]
            executed = end
            whole = 1
            if flags & PARTIAL:
                executed = begin + (head >> COUNT_SHIFT)
                end = executed + (flags >> 1 & 1)
                whole = 0
            elif noted[flow[end - 1]] and not final and at + words_of[number] > behind:
                out[HELD] = 1
                break
            at += 1
            if begin == end:
                continue
            i = begin
            turn = 0
        # Instructions of the record.
        while i < end:
            if s >= most_spans or o + ROOM > most_operands or b >= most_branches or c >= most_cuts:
                more = True
                break
            a0, a1 = access_of[i], access_of[i + 1]
            cut = False
            if a0 < a1 and pattern[a0] == 1:
                distance = words[at + 1] - words[at]
                size = bytes_of[a0]
                step = size if distance >= 0 else -size
                turns = abs(distance) // size
                done = i < executed
                if turns == 0:
                    if mica:
                        for k in range(a1 - a0):
                            addresses[o] = words[at + 2 * k]
                            slot = WRITE if kind_of[a0 + k] == 2 else (READ2 if k else READ1)
                            operands[o] = described(i, size, slot)
                            o += 1
                    begins[s], ends[s], marks[s] = i, i + 1, done
                    s += 1
                    e += 1
                    operands_at[s] = o
                    if not mica:
                        retired += 1
                        total += 1
                        cut = True
                    turn = 1
                else:
                    while turn < turns:
                        if s >= most_spans or o + ROOM > most_operands:
                            more = True
                            break
                        for k in range(a1 - a0):
                            addresses[o] = words[at + 2 * k] + turn * step
                            slot = WRITE if kind_of[a0 + k] == 2 else (READ2 if k else READ1)
                            operands[o] = described(i, size, slot)
                            o += 1
                        begins[s], ends[s], marks[s] = i, i + 1, done and turn == 0
                        s += 1
                        e += 1
                        operands_at[s] = o
                        turn += 1
                        if done and turn == (1 if mica else turns):
                            retired += 1
                            total += 1
                            if retired == interval:
                                cut = True
                                if mica and turn < turns:
                                    cuts[c, 0], cuts[c, 1], cuts[c, 2], cuts[c, 3] = s, b, retired, e
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
                        how, size, lanes, does = pattern[a], bytes_of[a], lanes_of[a], kind_of[a]
                        length = 1 if how == 0 else (1 + lanes if how == 4 else 2)
                        if does & (1 + turn_kind):
                            if turn_kind == 0:
                                slot = READ1 if reads == 0 else READ2
                                reads += 1
                                skipped = mica and reads > 2
                            else:
                                slot = REWRITE if does & 1 and not mica else WRITE
                                writes += 1
                                skipped = mica and writes > 1
                            if skipped:
                                pass
                            elif how == 0:
                                addresses[o], operands[o] = words[here], described(i, size, slot)
                                o += 1
                            elif how == 5:
                                addresses[o], operands[o] = words[here], described(i, words[here + 1], slot)
                                o += 1
                            elif how == 4:
                                for lane in range(lanes):
                                    if words[here] >> lane & 1:
                                        addresses[o] = words[here + 1 + lane]
                                        operands[o] = described(i, size, slot)
                                        o += 1
                            elif how == 3:
                                active = 0
                                for lane in range(lanes):
                                    active += words[here + 1] >> lane & 1
                                if active:
                                    addresses[o], operands[o] = words[here], described(i, active * size, slot)
                                    o += 1
                            else:
                                begun = -1
                                for lane in range(lanes + 1):
                                    if lane < lanes and words[here + 1] >> lane & 1:
                                        if begun < 0:
                                            begun = lane
                                    elif begun >= 0:
                                        addresses[o] = words[here] + begun * size
                                        operands[o] = described(i, (lane - begun) * size, slot)
                                        o += 1
                                        begun = -1
                        here += length
                at = here
                if mica and reads > 1:  # the original knows one size of reads
                    read = -1
                    for k in range(operands_at[s], o):
                        if slot_of(operands[k]) == READ1 and read < 0:
                            read = size_of(operands[k])
                        elif slot_of(operands[k]) == READ2 and read >= 0:
                            operands[k] = described(i, read, READ2)
                begins[s], ends[s], marks[s] = i, i + 1, i < executed
                s += 1
                e += 1
                operands_at[s] = o
                retired += 1
                total += 1
                cut = True
            i += 1
            if i == end and whole and noted[flow[i - 1]] and at <= behind:
                head = words[at]
                goes = words[at + 1] if head >> FLAGS_SHIFT & GOES_ON else address[first[head & NUMBER]]
                branches[b] = i - 1
                taken[b] = goes != address[i - 1] + nbytes[i - 1]
                targets[b] = goes
                b += 1
            if cut and retired == interval:
                cuts[c, 0], cuts[c, 1], cuts[c, 2], cuts[c, 3] = s, b, retired, e
                c += 1
                retired = 0
        if more:
            break
        i = -1
    cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[5] = at, i, end, executed, turn, whole
    counters[0], counters[2] = retired, total
    out[SPANS], out[OPERANDS], out[BRANCHES], out[CUTS], out[EVENTS] = s, o, b, c, e
    return more


class Events:
    """The arrays that `flatten` fills."""

    def __init__(self, room: int) -> None:
        self.begins = np.zeros(room, np.int32)
        self.ends = np.zeros(room, np.int32)
        self.marks = np.zeros(room, np.uint8)
        self.operands_at = np.zeros(room + 1, np.int32)
        self.addresses = np.zeros(room * 2 + ROOM, np.int64)
        self.operands = np.zeros(room * 2 + ROOM, np.int64)
        self.branches = np.zeros(room, np.int32)
        self.taken = np.zeros(room, np.uint8)
        self.targets = np.zeros(room, np.int64)
        self.cuts = np.zeros((256, 4), np.int64)
        self.out = np.zeros(6, np.int64)

    def clear(self) -> None:
        """Forget all events."""
        self.out[:HELD] = self.out[EVENTS] = 0

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """In the order in which `flatten` takes them."""
        return (
            *(self.begins, self.ends, self.marks, self.operands_at, self.addresses, self.operands),
            *(self.branches, self.taken, self.targets, self.cuts, self.out),
        )


class Turns:
    """Two `Events`: one is filled while analyses see the other. `now` is the one to be filled.

    Analyses see many events at a time: to wake a thread takes as long as to make thousands.
    """

    def __init__(self, room: int = 1 << 17) -> None:
        self.now, self._other = Events(room), Events(room)
        self._flush: Callable[[], None] | None = None

    def give(self, flush: Callable[[], None]) -> None:
        """It is the turn of whoever has its events seen by `flush`; another one's are seen first."""
        if self._flush is not None and self._flush != flush:
            self._flush()
        self._flush = flush

    def change(self) -> None:
        """The other one's turn: empty."""
        self.now, self._other = self._other, self.now
        self.now.clear()
