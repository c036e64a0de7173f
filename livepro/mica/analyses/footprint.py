"""Memory footprints: distinct blocks and pages of data accessed and of code executed."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.spans.column import grown
from livepro.events.spans.feeding import Slice
from livepro.events.spans.operand import size_of
from livepro.events.structures.tables import doubled, empty, find, full
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts


@njit(nogil=True, cache=True)
def enter(keys, values, state, which, first, last, interval):
    """Count those of the blocks `first` to `last` that have not been in this interval. A row's value is
    the last interval in which it was."""
    for block in range(first, last + 1):
        at = find(keys, block)
        if keys[at] != block:
            keys[at] = block
            state[4 + which] += 1
        if values[at, 0] != interval:
            values[at, 0] = interval
            state[which] += 1


@njit(nogil=True, cache=True)
def consume(
    begins, ends, operands_at, addresses, operands, begin, stop, lengths, address_of, bytes_of,
    block, page, interval, seen, whole, recent, state,
    blocks, block_values, pages, page_values,
    code_blocks, code_block_values, code_pages, code_page_values,
):  # fmt: skip
    """Returns the span to go on with, whose first part may be entered already, once tables have grown."""
    fine = min(block, page)
    mask = len(recent) - 1
    for s in range(begin, stop):
        first = begins[s]
        if whole[first] != interval:
            for i in range(first, ends[s]):
                if seen[i] != interval:
                    if full(len(code_blocks), state[6]) or full(len(code_pages), state[7]):
                        return s
                    seen[i] = interval
                    low, high = address_of[i], address_of[i] + bytes_of[i] - 1
                    enter(code_blocks, code_block_values, state, 2, low >> block, high >> block, interval)
                    enter(code_pages, code_page_values, state, 3, low >> page, high >> page, interval)
            if lengths[first] == ends[s] - first:
                whole[first] = interval
        for o in range(operands_at[s], operands_at[s + 1]):
            size = size_of(operands[o])
            if size > 0:
                # Most accesses are to a part of both a block and a page that this interval has had lately.
                part, last = addresses[o] >> fine, addresses[o] + size - 1 >> fine
                if part == last:
                    if recent[part & mask] == part:
                        continue
                    if full(len(blocks), state[4]) or full(len(pages), state[5]):
                        return s
                    recent[part & mask] = part
                elif full(len(blocks), state[4]) or full(len(pages), state[5]):
                    return s
                low, high = addresses[o] >> block, addresses[o] + size - 1 >> block
                enter(blocks, block_values, state, 0, low, high, interval)
                low, high = addresses[o] >> page, addresses[o] + size - 1 >> page
                enter(pages, page_values, state, 1, low, high, interval)
    return stop


_NOWHERE = -(1 << 63)
_RECENT = 1 << 15  # parts remembered, in 256 KiB: 2 MiB of 64-byte blocks, more than many loops go over


class Footprint(Analysis):
    """Values: blocks and pages of data, blocks and pages of code."""

    effort = 3
    additive = False

    def __init__(self, block: int, page: int) -> None:
        self._block, self._page = block, page
        self._interval = 1
        self._seen = np.zeros(1024, np.int64)
        self._whole = np.zeros(1024, np.int64)
        self._recent = np.full(_RECENT, _NOWHERE)
        self._state = np.zeros(8, np.int64)
        self._tables = tuple(empty(1) for _ in range(4))

    def see(self, part: Slice, facts: Facts) -> None:
        self._seen = grown(self._seen, len(facts.types))
        self._whole = grown(self._whole, len(facts.types))
        events, at = part.events, part.begin
        while True:
            at = consume(
                *(events.begins, events.ends, events.operands_at, events.addresses, events.operands),
                *(at, part.end, facts.listing.lengths, facts.addresses, facts.bytes),
                *(self._block, self._page, self._interval),
                *(self._seen, self._whole, self._recent, self._state),
                *(array for table in self._tables for array in table),
            )
            if at == part.end:
                break
            self._tables = tuple(
                doubled(*table) if full(len(table[0]), used) else table
                for table, used in zip(self._tables, self._state[4:], strict=True)
            )

    def values(self) -> list[int]:
        return self._state[:4].tolist()

    def next_interval(self) -> None:
        self._interval += 1
        self._state[:4] = 0
        self._recent[:] = _NOWHERE

    def everything(self) -> tuple[np.ndarray, ...]:
        """All blocks and pages of data, blocks and pages of code of all intervals, by number."""
        return tuple(keys[keys != _NOWHERE] for keys, _ in self._tables)
