"""Instruction-level parallelism of an ideal machine with a window of W instructions.

An instruction can begin once what it reads is there: t = max(clock, availability of its registers and
blocks of memory); what it writes is there at t + 1. The window holds W instructions in order; when it is
full the clock advances by one, and the instructions at its head that are done leave.

Instructions leave in order: the head is the first one that begins at the clock or later. Nothing begins
later than one after the latest begin so far, so that the first instruction to begin at a time can be noted as
it comes, and the new head is looked up, without a branch that would be hard to predict.

The loop has four windows side by side, written out, so that their times are in registers; what is said of a
block of memory is in one row for all. Windows that nobody asked for repeat the last one.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.pointers import borrowed
from livepro.events.spans.feeding import Slice
from livepro.events.spans.operand import WRITE, instruction_of, size_of, slot_of
from livepro.events.structures.tables import ROW_BITS, clear, full, more_rows, row_of, rows
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import FIRST, Facts
from livepro.mica.settings import Settings

LANES = 4
"""Windows side by side."""
U = np.uint64  # an unsigned index needs no test for being negative
_1, _2, _3, _4 = U(1), U(2), U(3), U(4)
_LARGEST_OPERAND = 64
"""Bytes of the largest operand of an instruction whose block is a span with others: a block of memory each,
at most. (Larger areas are spans of their own, of no more than MOST_KEYS bytes.)"""


@njit(nogil=True, cache=True)
def consume(
    begins, ends, operands_at, addresses, operands, begin, stop,
    reads_at, writes_at, registers, registers_of, shift,
    windows, clock, fills, latest, tail_at, first_at, available, table, used,
):  # fmt: skip
    """`first_at` has the number of the first instruction that begins at a time (by time, modulo), `latest`
    the latest time at which one has begun; `table` a row for each block of memory (`tables.row_of`)."""
    begins, ends, operands_at = borrowed(begins), borrowed(ends), borrowed(operands_at)
    addresses, operands, reads_at = borrowed(addresses), borrowed(operands), borrowed(reads_at)
    writes_at, registers, registers_of = borrowed(writes_at), borrowed(registers), borrowed(registers_of)
    first_at, available, table, used = (
        borrowed(first_at),
        borrowed(available),
        borrowed(table),
        borrowed(used),
    )
    length = len(first_at) // LANES
    mask = length - 1
    tail = tail_at[0]
    w0, w1, w2, w3 = windows[0], windows[1], windows[2], windows[3]
    c0, c1, c2, c3 = clock[0], clock[1], clock[2], clock[3]
    f0, f1, f2, f3 = fills[0], fills[1], fills[2], fills[3]
    m0, m1, m2, m3 = latest[0], latest[1], latest[2], latest[3]
    goes_on = stop
    for s in range(U(begin), U(stop)):
        o, last = U(operands_at[s]), U(operands_at[s + _1])
        if full(len(table) >> ROW_BITS, used[0] + _LARGEST_OPERAND * (last - o)):
            goes_on = np.int64(s)
            break
        for i in range(U(begins[s]), U(ends[s])):
            s0, s1, s2, s3 = c0, c1, c2, c3
            # Two registers read and one written, of which some stand for nothing; the others are rare.
            usual = registers_of[i]
            register = U(LANES * (usual & 0xFFFF))
            s0 = max(s0, available[register])
            s1 = max(s1, available[register + _1])
            s2 = max(s2, available[register + _2])
            s3 = max(s3, available[register + _3])
            register = U(LANES * (usual >> 16 & 0xFFFF))
            s0 = max(s0, available[register])
            s1 = max(s1, available[register + _1])
            s2 = max(s2, available[register + _2])
            s3 = max(s3, available[register + _3])
            if usual >> 48:
                for r in range(U(reads_at[i]), U(writes_at[i])):
                    register = U(LANES * (registers[r] + FIRST))
                    s0 = max(s0, available[register])
                    s1 = max(s1, available[register + _1])
                    s2 = max(s2, available[register + _2])
                    s3 = max(s3, available[register + _3])
            while o < last and U(instruction_of(operands[o])) == i and slot_of(operands[o]) < WRITE:
                size = size_of(operands[o])
                if size > 0:
                    for block in range(addresses[o] >> shift, (addresses[o] + size - 1 >> shift) + 1):
                        row = row_of(table, block)  # of a block that is not known all zeros follow
                        s0 = max(s0, table[row + _1])
                        s1 = max(s1, table[row + _2])
                        s2 = max(s2, table[row + _3])
                        s3 = max(s3, table[row + _4])
                o += _1
            register = U(LANES * (usual >> 32 & 0xFFFF))
            available[register] = s0 + 1
            available[register + _1] = s1 + 1
            available[register + _2] = s2 + 1
            available[register + _3] = s3 + 1
            if usual >> 48:
                for r in range(U(writes_at[i]), U(reads_at[i + _1])):
                    register = U(LANES * (registers[r] + FIRST))
                    available[register] = s0 + 1
                    available[register + _1] = s1 + 1
                    available[register + _2] = s2 + 1
                    available[register + _3] = s3 + 1
            while o < last and U(instruction_of(operands[o])) == i:
                size = size_of(operands[o])
                if size > 0:
                    for block in range(addresses[o] >> shift, (addresses[o] + size - 1 >> shift) + 1):
                        row = row_of(table, block)
                        if table[row] != block:
                            table[row] = block
                            used[0] += 1
                        table[row + _1] = s0 + 1
                        table[row + _2] = s1 + 1
                        table[row + _3] = s2 + 1
                        table[row + _4] = s3 + 1
                o += _1
            # (What is noted for the time behind the latest holds once something begins there.)
            first_at[U(m0 + 1 & mask)] = tail
            first_at[U((m1 + 1 & mask) + length)] = tail
            first_at[U((m2 + 1 & mask) + 2 * length)] = tail
            first_at[U((m3 + 1 & mask) + 3 * length)] = tail
            m0 += s0 > m0
            m1 += s1 > m1
            m2 += s2 > m2
            m3 += s3 > m3
            tail += 1
            if tail == f0:
                c0 += 1
                f0 = w0 + (first_at[U(c0 & mask)] if c0 <= m0 else tail)
            if tail == f1:
                c1 += 1
                f1 = w1 + (first_at[U((c1 & mask) + length)] if c1 <= m1 else tail)
            if tail == f2:
                c2 += 1
                f2 = w2 + (first_at[U((c2 & mask) + 2 * length)] if c2 <= m2 else tail)
            if tail == f3:
                c3 += 1
                f3 = w3 + (first_at[U((c3 & mask) + 3 * length)] if c3 <= m3 else tail)
    tail_at[0] = tail
    clock[0], clock[1], clock[2], clock[3] = c0, c1, c2, c3
    fills[0], fills[1], fills[2], fills[3] = f0, f1, f2, f3
    latest[0], latest[1], latest[2], latest[3] = m0, m1, m2, m3
    return goes_on


class Ilp(Analysis):
    """Cycles in at most LANES windows of several sizes. Values: a number of cycles for each window."""

    effort = 25

    def __init__(self, settings: Settings, windows: tuple[int, ...]) -> None:
        self._shift = settings.block_size
        self._asked = len(windows)
        self._windows = np.array((*windows, *[windows[-1]] * (LANES - len(windows))), np.int64)
        self._clock = np.zeros(LANES, np.int64)
        self._began = np.zeros(LANES, np.int64)
        self._fills = self._windows.copy()
        self._tail = np.zeros(1, np.int64)
        self._latest = np.full(LANES, -1, np.int64)
        # Times from the clock to one behind the latest, which a window's longest chain is ahead.
        self._first_at = np.zeros(LANES << (max(windows) + 1).bit_length(), np.int64)
        self._available = np.zeros(64 * LANES, np.int64)
        self._table = rows()
        self._used = np.zeros(1, np.int64)

    def see(self, part: Slice, facts: Facts) -> None:
        if len(self._available) < LANES * (facts.registers_known + FIRST):
            more = np.zeros(2 * LANES * (facts.registers_known + FIRST), np.int64)
            more[: len(self._available)] = self._available
            self._available = more
        events, at = part.events, part.begin
        while True:
            at = consume(
                *(events.begins, events.ends, events.operands_at, events.addresses, events.operands),
                *(at, part.end),
                *(facts.reads_at, facts.writes_at, facts.registers, facts.usual, self._shift),
                *(self._windows, self._clock, self._fills, self._latest, self._tail, self._first_at),
                *(self._available, self._table, self._used),
            )
            if at == part.end:
                break
            self._table = more_rows(self._table)

    def values(self) -> list[int]:
        return (self._clock - self._began)[: self._asked].tolist()

    def next_interval(self) -> None:
        self._began[:] = self._clock
        if self._used[0]:
            clear(self._table)
            self._used[0] = 0
