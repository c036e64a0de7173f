"""Instruction-level parallelism of an ideal machine with a window of W instructions.

An instruction can begin once what it reads is there: t = max(clock, availability of its registers and
blocks of memory); what it writes is there at t + 1. The window holds W instructions in order; when it is
full the clock advances by one, and the instructions at its head that are done leave.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.facts import Facts
from livepro.mica.flattening import WRITE
from livepro.mica.settings import Settings
from livepro.mica.tables import EMPTY, doubled, empty, find, full


@njit(nogil=True, cache=True)
def consume(
    instructions, operands_at, addresses, sizes, slots, begin, stop,
    reads_at, writes_at, registers, shift,
    windows, clock, cycles, ring, heads, filled, available, keys, values, used,
):  # fmt: skip
    n = len(windows)
    start = np.empty(n, np.int64)
    for e in range(begin, stop):
        if full(keys, used[0]):
            return e
        i = instructions[e]
        for w in range(n):
            start[w] = clock[w]
        for r in range(reads_at[i], writes_at[i]):
            register = registers[r]
            for w in range(n):
                if available[register, w] > start[w]:
                    start[w] = available[register, w]
        o0, o1 = operands_at[e], operands_at[e + 1]
        for o in range(o0, o1):
            if slots[o] != WRITE and sizes[o] > 0:
                for block in range(addresses[o] >> shift, (addresses[o] + sizes[o] - 1 >> shift) + 1):
                    at = find(keys, block)
                    if keys[at] == block:
                        for w in range(n):
                            if values[at, w] > start[w]:
                                start[w] = values[at, w]
        for r in range(writes_at[i], reads_at[i + 1]):
            register = registers[r]
            for w in range(n):
                available[register, w] = start[w] + 1
        for o in range(o0, o1):
            if slots[o] == WRITE and sizes[o] > 0:
                for block in range(addresses[o] >> shift, (addresses[o] + sizes[o] - 1 >> shift) + 1):
                    at = find(keys, block)
                    if keys[at] != block:
                        keys[at] = block
                        used[0] += 1
                    for w in range(n):
                        values[at, w] = start[w] + 1
        for w in range(n):
            size = windows[w]
            head, many = heads[w], filled[w]
            tail = head + many
            ring[w, tail if tail < size else tail - size] = start[w]
            many += 1
            if many == size:
                clock[w] += 1
                cycles[w] += 1
                now = clock[w]
                while many > 0 and ring[w, head] < now:
                    head += 1
                    if head == size:
                        head = 0
                    many -= 1
            heads[w], filled[w] = head, many
    return stop


class Ilp(Analysis):
    """Cycles in windows of several sizes. Values: a number of cycles for each window."""

    def __init__(self, settings: Settings, windows: tuple[int, ...]) -> None:
        n = len(windows)
        self._shift = settings.block_size
        self._windows = np.array(windows, np.int64)
        self._clock = np.zeros(n, np.int64)
        self._cycles = np.zeros(n, np.int64)
        self._ring = np.zeros((n, max(windows)), np.int64)
        self._heads = np.zeros(n, np.int64)
        self._filled = np.zeros(n, np.int64)
        self._available = np.zeros((64, n), np.int64)
        self._table = empty(n)
        self._used = np.zeros(1, np.int64)

    def see(self, part: Slice, facts: Facts) -> None:
        if len(self._available) < facts.registers_known:
            more = np.zeros((2 * facts.registers_known, len(self._windows)), np.int64)
            more[: len(self._available)] = self._available
            self._available = more
        events, at = part.events, part.begin
        while True:
            at = consume(
                *(events.instructions, events.operands_at, events.addresses, events.sizes, events.slots),
                *(at, part.end, facts.reads_at, facts.writes_at, facts.registers, self._shift),
                *(self._windows, self._clock, self._cycles, self._ring, self._heads, self._filled),
                *(self._available, *self._table, self._used),
            )
            if at == part.end:
                break
            self._table = doubled(*self._table)

    def values(self) -> list[int]:
        return self._cycles.tolist()

    def next_interval(self) -> None:
        self._cycles[:] = 0
        if self._used[0]:
            self._table[0][:] = EMPTY
            self._used[0] = 0
