"""What is static of blocks whose accesses are at one address each, for analyses that take in records by
themselves. Numbers that a loop asks for together are side by side."""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.column import Column
from livepro.events.spans.listing import Listing
from livepro.events.spans.operand import WRITE, instruction_of, size_of, slot_of

BLOCK_BITS = 2
"""A block's row has 2**2 numbers:"""
WORDS, ACCESSES, FIRST, LENGTH = range(4)
"""the words of its record (0: it is not plain), its first access and, in the lowest bits, how many there are,
its first instruction, and how many there are."""
COUNT_BITS = 16
"""Of a row's accesses: how many they are."""
WORD_BITS, SIZE_BITS, KIND_BITS = 16, 13, 1
"""An access in one word, from the lowest bits on: the word of the record that has its address, its size in
bytes, whether it is a write, and its place: where what is remembered of it alone is."""
PLACES = 3
"""Places of each address of code: two reads and a write."""


@njit(nogil=True, cache=True)
def lay_out(
    begin, end, first, words_of, plain, listed_at, listed_words, listed, sites, rows, accesses, owners
):  # fmt: skip
    """Write the rows of the blocks from `begin` to `end`, their accesses and the instructions that make
    them."""
    start = listed_at[begin]
    for b in range(begin, end):
        row = (b - begin) << BLOCK_BITS
        count = listed_at[b + 1] - listed_at[b]
        fits = plain[b] and not words_of[b] >> WORD_BITS and not count >> COUNT_BITS
        for k in range(listed_at[b], listed_at[b + 1]):
            size, slot, i = size_of(listed[k]), min(slot_of(listed[k]), WRITE), instruction_of(listed[k])
            if size >> SIZE_BITS:
                fits = False
            high = (sites[i] * PLACES + slot) << KIND_BITS | (slot == WRITE)
            accesses[k - start] = (high << SIZE_BITS | size) << WORD_BITS | listed_words[k]
            owners[k - start] = i
        if fits:
            rows[row + WORDS] = words_of[b]
            rows[row + ACCESSES] = listed_at[b] << COUNT_BITS | count
            rows[row + FIRST], rows[row + LENGTH] = first[b], first[b + 1] - first[b]


class PlainBlocks:
    """The plain blocks of one process image: `rows` by number, `accesses`, and their `owners`, the
    instructions that make them."""

    def __init__(self) -> None:
        self._rows = Column(np.int64)
        self._accesses = Column(np.int64)
        self._owners = Column(np.int64)

    def update(self, tables: StaticTables, listing: Listing, sites: npt.NDArray[np.int64]) -> None:
        """Look at the blocks that are new, which are listed already; `sites` numbers the addresses of
        instructions."""
        seen, known = self._rows.length >> BLOCK_BITS, tables.known
        if seen >= known:
            return
        arrays = listing.arrays()
        rows = np.zeros((known - seen) << BLOCK_BITS, np.int64)
        accesses, owners = np.zeros((2, int(arrays[1][known] - arrays[1][seen])), np.int64)
        asked: tuple[Any, ...] = (
            *(seen, known, tables.first, tables.words, *arrays, sites),
            *(rows, accesses, owners),
        )
        lay_out(*asked)
        for column, values in ((self._rows, rows), (self._accesses, accesses), (self._owners, owners)):
            column.add(values)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """See `BLOCK_BITS`; all zeros for a block that is not known."""
        return self._rows.data

    @property
    def accesses(self) -> npt.NDArray[np.int64]:
        """See `WORD_BITS`."""
        return self._accesses.data

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """The instruction of each access."""
        return self._owners.data
