"""Memory footprints: distinct blocks and pages of data accessed and of code executed.

What is told by function needs to know which instruction touched what
(`livepro.events.structures.touched`); that is also what keeps most accesses from being looked up twice.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.engines.stream import FLAGS, FLAGS_SHIFT
from livepro.events.pointers import borrowed
from livepro.events.spans.column import grown
from livepro.events.spans.feeding import Slice
from livepro.events.spans.operand import instruction_of, size_of
from livepro.events.structures.tables import doubled, empty, find, full
from livepro.events.structures.touched import BITS, UNIT_BITS, USED, Touched, crowded, place, touch
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts
from livepro.mica.plain import (
    ACCESSES,
    BLOCK_BITS,
    COUNT_BITS,
    FIRST,
    LENGTH,
    SIZE_BITS,
    WORD_BITS,
    WORDS,
    PlainBlocks,
)

U = np.uint64  # an unsigned index needs no test for being negative
ONE, BLOCK = U(1), U(BLOCK_BITS)
_WORD, _SIZE, _COUNT = (1 << WORD_BITS) - 1, (1 << SIZE_BITS) - 1, (1 << COUNT_BITS) - 1
_UNITS = (1 << UNIT_BITS) - 1
_NOWHERE = -(1 << 63)
_RECENT_BITS = 14
_RECENT = 1 << _RECENT_BITS  # accesses remembered, in 256 KiB
_SPREAD = 40503  # odd; about 2**16 over the golden ratio (Knuth, TAOCP 3, 6.4)


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
def enter_code(
    first, end, address_of, bytes_of, block, page, interval, seen, state,
    code_blocks, code_block_values, code_pages, code_page_values,
):  # fmt: skip
    """Count the code of the instructions from `first` to `end`. False if there may be no room for it."""
    for i in range(first, end):
        if seen[i] != interval:
            if full(len(code_blocks), state[6]) or full(len(code_pages), state[7]):
                return False
            seen[i] = interval
            low, high = address_of[i], address_of[i] + bytes_of[i] - 1
            enter(code_blocks, code_block_values, state, 2, low >> block, high >> block, interval)
            enter(code_pages, code_page_values, state, 3, low >> page, high >> page, interval)
    return True


@njit(nogil=True, cache=True, forceinline=True)
def enter_data(
    i, address, size, block, page, interval, recent, touched, used, state,
    blocks, block_values, pages, page_values,
):  # fmt: skip
    """Count what instruction `i` accesses. False if there may be no room for it. `recent` is None where the
    caller knows what that has accessed lately."""
    fine = min(block, page)
    part, last = address >> fine, address + size - 1 >> fine
    # Most accesses are to a part of both a block and a page that this instruction has had lately.
    at = U(0)
    if recent is not None:
        at = U(part + i * _SPREAD & _RECENT - 1) << ONE
        if part == last and recent[at] == part and recent[at + ONE] == i:
            return True
    if full(len(blocks), state[4]) or full(len(pages), state[5]) or crowded(len(touched), used[USED]):
        return False
    new = interval > 1
    for one in range(part, last + 1):
        if touch(i, one, touched, used):
            new = True
    if new:
        enter(blocks, block_values, state, 0, address >> block, address + size - 1 >> block, interval)
        enter(pages, page_values, state, 1, address >> page, address + size - 1 >> page, interval)
    if recent is not None and part == last:
        recent[at], recent[at + ONE] = part, i
    return True


@njit(nogil=True, cache=True)
def consume(
    begins, ends, operands_at, addresses, operands, begin, stop, lengths,
    address_of, bytes_of, block, page, interval, seen, whole, recent, touched, used, state,
    blocks, block_values, pages, page_values,
    code_blocks, code_block_values, code_pages, code_page_values,
):  # fmt: skip
    """Returns the span to go on with, whose first part may be entered already, once tables have grown."""
    recent, touched, used, state = borrowed(recent), borrowed(touched), borrowed(used), borrowed(state)
    blocks, block_values, pages = borrowed(blocks), borrowed(block_values), borrowed(pages)
    page_values = borrowed(page_values)
    for s in range(begin, stop):
        first = begins[s]
        if whole[first] != interval:
            if not enter_code(
                first, ends[s], address_of, bytes_of, block, page, interval, seen, state,
                code_blocks, code_block_values, code_pages, code_page_values,
            ):  # fmt: skip
                return s
            if lengths[first] == ends[s] - first:
                whole[first] = interval
        for o in range(operands_at[s], operands_at[s + 1]):
            size = size_of(operands[o])
            if size > 0 and not enter_data(
                instruction_of(operands[o]), addresses[o], size, block, page, interval, recent,
                touched, used, state, blocks, block_values, pages, page_values,
            ):  # fmt: skip
                return s
    return stop


@njit(nogil=True, cache=True)
def read(
    words, upto, at, rows, accesses, owners, latest,
    address_of, bytes_of, block, page, interval, seen, whole, touched, used, state,
    blocks, block_values, pages, page_values,
    code_blocks, code_block_values, code_pages, code_page_values,
):  # fmt: skip
    """See `Analysis.read`; also stops where tables have to grow, at a record of which a part may have been
    entered. `latest` has the units (`touched`) that each of `accesses` was last to, and their row."""
    fine = min(block, page)
    rows, accesses, latest, owners = borrowed(rows), borrowed(accesses), borrowed(latest), borrowed(owners)
    touched, used, state = borrowed(touched), borrowed(used), borrowed(state)
    blocks, block_values, pages = borrowed(blocks), borrowed(block_values), borrowed(pages)
    page_values = borrowed(page_values)
    behind, upto, at, executed = U(len(words) - 1), U(upto), U(at), 0
    while at < upto:
        number = words[at]
        if number >> FLAGS_SHIFT & FLAGS:
            break
        row = U(number) << BLOCK
        next_at = at + U(rows[row + U(WORDS)])
        if next_at > behind or next_at == at:
            break
        first, length = rows[row + U(FIRST)], rows[row + U(LENGTH)]
        if whole[first] != interval:
            if not enter_code(
                first, first + length, address_of, bytes_of, block, page, interval, seen, state,
                code_blocks, code_block_values, code_pages, code_page_values,
            ):  # fmt: skip
                break
            whole[first] = interval
        listed = rows[row + U(ACCESSES)]
        k = U(listed >> COUNT_BITS)
        end, room = k + U(listed & _COUNT), True
        while k < end:
            access = accesses[k]
            address, size = words[at + U(access & _WORD)], access >> WORD_BITS & _SIZE
            part, kept = address >> fine, k << ONE
            group = part >> UNIT_BITS
            if latest[kept] != group:
                latest[kept], latest[kept + ONE] = group, place(touched, group, owners[k]) + U(BITS)
            bits = touched[U(latest[kept + ONE])]
            if not bits >> (part & _UNITS) & 1 or address + size - 1 >> fine != part:
                room = size == 0 or enter_data(
                    owners[k], address, size, block, page, interval, None,
                    touched, used, state, blocks, block_values, pages, page_values,
                )  # fmt: skip
                if not room:
                    break
                latest[kept] = _NOWHERE  # it may have a row now
            k += ONE
        if not room:
            break
        executed += length
        at = next_at
    return np.int64(at), executed


class Footprint(Analysis):
    """Values: blocks and pages of data, blocks and pages of code."""

    effort = 3
    additive = False

    def __init__(self, block: int, page: int) -> None:
        self._block, self._page = block, page
        self._interval = 1
        self._seen = np.zeros(1024, np.int64)
        self._whole = np.zeros(1024, np.int64)
        self._latest = np.zeros((0, 2), np.int64)
        self._recent = np.full(2 * _RECENT, _NOWHERE)
        self._touched = Touched()
        self._state = np.zeros(8, np.int64)
        self._tables = tuple(empty(1) for _ in range(4))

    def _asked(self, facts: Facts, *recent: np.ndarray) -> tuple:
        return (
            *(facts.addresses, facts.bytes, self._block, self._page, self._interval),
            *(self._seen, self._whole, *recent, *self._touched.arrays(), self._state),
            *(array for table in self._tables for array in table),
        )

    def _follow(self, facts: Facts) -> None:
        self._seen = grown(self._seen, len(facts.types))
        self._whole = grown(self._whole, len(facts.types))

    def _grow(self) -> bool:
        """Make room where there may not be enough. Whether there was something to do."""
        grows = [full(len(keys), used) for (keys, _), used in zip(self._tables, self._state[4:], strict=True)]
        self._tables = tuple(
            doubled(*table) if more else table for table, more in zip(self._tables, grows, strict=True)
        )
        moved = self._touched.grow()
        if moved:
            self._latest[:] = _NOWHERE, BITS
        return moved or any(grows)

    def see(self, part: Slice, facts: Facts) -> None:
        self._follow(facts)
        events, at = part.events, part.begin
        while True:
            at = consume(
                *(events.begins, events.ends, events.operands_at, events.addresses, events.operands),
                *(at, part.end, facts.listing.lengths, *self._asked(facts, self._recent)),
            )
            if at == part.end:
                break
            self._grow()

    def read(self, words, upto, at, facts):
        self._follow(facts)
        plain = facts.plain
        self._remember(plain)
        executed = 0
        while True:
            asked = words, upto, at, plain.rows, plain.accesses, plain.owners, self._latest.reshape(-1)
            at, more = read(*asked, *self._asked(facts))
            executed += more
            if not self._grow():
                return at, executed

    def _remember(self, plain: PlainBlocks) -> None:
        """Have room for what each access was last to."""
        before = len(self._latest)
        self._latest = grown(self._latest, len(plain.accesses))
        self._latest[before:] = _NOWHERE, BITS

    def values(self) -> list[int]:
        return self._state[:4].tolist()

    def next_interval(self) -> None:
        self._interval += 1
        self._state[:4] = 0
        self._recent[:] = _NOWHERE

    def everything(self) -> tuple[np.ndarray, ...]:
        """All blocks and pages of data, blocks and pages of code of all intervals, by number."""
        return tuple(keys[keys != _NOWHERE] for keys, _ in self._tables)

    @property
    def touched(self) -> np.ndarray | None:
        """What each instruction has touched over the whole run (`touched.Touched.rows`), in units of the
        lesser of a block and a page; None if it was too much to be kept."""
        return self._touched.rows

    @property
    def executed(self) -> np.ndarray:
        """The numbers of the instructions that have been executed."""
        return np.flatnonzero(self._seen)
