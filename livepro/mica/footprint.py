"""Memory footprints: distinct blocks and pages of data accessed and of code executed."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.mica.analysis import Analysis, Slice
from livepro.mica.facts import Facts
from livepro.mica.itypes import grown
from livepro.mica.tables import doubled, empty, find


@njit(nogil=True, cache=True)
def enter(keys, values, state, which, first, last, interval):
    """Count those of the blocks `first` to `last` that have not been in this interval. A row's value is
    the last interval in which it was."""
    for block in range(first, last + 1):
        at = find(keys, block)
        if keys[at] != block:
            if 2 * state[4 + which] >= len(keys):
                keys, values = doubled(keys, values)
                at = find(keys, block)
            keys[at] = block
            state[4 + which] += 1
        if values[at, 0] != interval:
            values[at, 0] = interval
            state[which] += 1
    return keys, values


@njit(nogil=True, cache=True)
def consume(
    instructions, operands_at, addresses, sizes, begin, stop, address_of, bytes_of,
    block, page, interval, seen, state,
    blocks, block_values, pages, page_values,
    code_blocks, code_block_values, code_pages, code_page_values,
):  # fmt: skip
    fine = min(block, page)
    same = state[8]  # the last access was in this part of both a block and a page
    for e in range(begin, stop):
        i = instructions[e]
        if seen[i] != interval:
            seen[i] = interval
            low, high = address_of[i], address_of[i] + bytes_of[i] - 1
            code_blocks, code_block_values = enter(
                code_blocks, code_block_values, state, 2, low >> block, high >> block, interval
            )
            code_pages, code_page_values = enter(
                code_pages, code_page_values, state, 3, low >> page, high >> page, interval
            )
        for o in range(operands_at[e], operands_at[e + 1]):
            if sizes[o] > 0:
                last = addresses[o] + sizes[o] - 1 >> fine
                if last == same and addresses[o] >> fine == same:
                    continue
                same = last
                low, high = addresses[o] >> block, addresses[o] + sizes[o] - 1 >> block
                blocks, block_values = enter(blocks, block_values, state, 0, low, high, interval)
                low, high = addresses[o] >> page, addresses[o] + sizes[o] - 1 >> page
                pages, page_values = enter(pages, page_values, state, 1, low, high, interval)
    state[8] = same
    return (
        (blocks, block_values),
        (pages, page_values),
        (code_blocks, code_block_values),
        (code_pages, code_page_values),
    )


_NOWHERE = -(1 << 63)


class Footprint(Analysis):
    """Values: blocks and pages of data, blocks and pages of code."""

    additive = False

    def __init__(self, block: int, page: int) -> None:
        self._block, self._page = block, page
        self._interval = 1
        self._seen = np.zeros(1024, np.int64)
        self._state = np.zeros(9, np.int64)
        self._state[8] = _NOWHERE
        self._tables = tuple(empty(1) for _ in range(4))

    def see(self, part: Slice, facts: Facts) -> None:
        self._seen = grown(self._seen, len(facts.types))
        events = part.events
        self._tables = consume(
            *(events.instructions, events.operands_at, events.addresses, events.sizes, part.begin, part.end),
            *(facts.addresses, facts.bytes, self._block, self._page, self._interval, self._seen, self._state),
            *(array for table in self._tables for array in table),
        )

    def values(self) -> list[int]:
        return self._state[:4].tolist()

    def next_interval(self) -> None:
        self._interval += 1
        self._state[:4] = 0
        self._state[8] = _NOWHERE

    def everything(self) -> tuple[np.ndarray, ...]:
        """All blocks and pages of data, blocks and pages of code of all intervals, by number."""
        return tuple(keys[keys != _NOWHERE] for keys, _ in self._tables)
