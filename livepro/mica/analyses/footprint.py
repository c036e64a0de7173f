"""Memory footprints: distinct blocks and pages of data accessed and of code executed."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.analyses.itypes import grown
from livepro.mica.facts import Facts
from livepro.mica.tables import doubled, empty, find, full


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
    instructions, operands_at, addresses, sizes, begin, stop, address_of, bytes_of,
    block, page, interval, seen, recent, state,
    blocks, block_values, pages, page_values,
    code_blocks, code_block_values, code_pages, code_page_values,
):  # fmt: skip
    fine = min(block, page)
    mask = len(recent) - 1
    for e in range(begin, stop):
        if (
            full(blocks, state[4]) or full(pages, state[5]) or full(code_blocks, state[6])
            or full(code_pages, state[7])
        ):  # fmt: skip
            return e
        i = instructions[e]
        if seen[i] != interval:
            seen[i] = interval
            low, high = address_of[i], address_of[i] + bytes_of[i] - 1
            enter(code_blocks, code_block_values, state, 2, low >> block, high >> block, interval)
            enter(code_pages, code_page_values, state, 3, low >> page, high >> page, interval)
        for o in range(operands_at[e], operands_at[e + 1]):
            if sizes[o] > 0:
                # Most accesses are to a part of both a block and a page that this interval has had lately.
                part, last = addresses[o] >> fine, addresses[o] + sizes[o] - 1 >> fine
                if part == last:
                    if recent[part & mask] == part:
                        continue
                    recent[part & mask] = part
                low, high = addresses[o] >> block, addresses[o] + sizes[o] - 1 >> block
                enter(blocks, block_values, state, 0, low, high, interval)
                low, high = addresses[o] >> page, addresses[o] + sizes[o] - 1 >> page
                enter(pages, page_values, state, 1, low, high, interval)
    return stop


_NOWHERE = -(1 << 63)
_RECENT = 1 << 15  # parts remembered, in 256 KiB: 2 MiB of 64-byte blocks, more than many loops go over


class Footprint(Analysis):
    """Values: blocks and pages of data, blocks and pages of code."""

    additive = False

    def __init__(self, block: int, page: int) -> None:
        self._block, self._page = block, page
        self._interval = 1
        self._seen = np.zeros(1024, np.int64)
        self._recent = np.full(_RECENT, _NOWHERE)
        self._state = np.zeros(8, np.int64)
        self._tables = tuple(empty(1) for _ in range(4))

    def see(self, part: Slice, facts: Facts) -> None:
        self._seen = grown(self._seen, len(facts.types))
        events, at = part.events, part.begin
        while True:
            at = consume(
                *(events.instructions, events.operands_at, events.addresses, events.sizes, at, part.end),
                *(facts.addresses, facts.bytes, self._block, self._page, self._interval, self._seen),
                *(self._recent, self._state),
                *(array for table in self._tables for array in table),
            )
            if at == part.end:
                break
            self._tables = tuple(
                doubled(*table) if full(table[0], used) else table
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
