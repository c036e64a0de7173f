"""What is static of blocks whose accesses are at one address each: the lines that they fetch, and what they
access behind each fetch. Rows of numbers side by side, since a loop asks for all of them at once."""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.column import Column, grown
from livepro.events.spans.listing import Listing
from livepro.events.spans.operand import REWRITE, WRITE, instruction_of, size_of, slot_of

BLOCK_BITS, FETCH_BITS = 2, 2
"""A block's row has 2**2 numbers, and so has a fetch's."""
WORDS, FETCHES_AT, FETCHES, ACCESSES_AT = range(4)
"""Of a block the words of its record (0: it is not plain), where its fetches begin and how
many they are, and the number of its first access."""
LINE, CROSSED, FETCHING, BEFORE = range(4)
"""Of a fetch its line, how many lines behind it are fetched, too, the instruction, and the access behind the
last one that comes before the next fetch."""
WORD_BITS, SIZE_BITS, COLUMN_BITS = 16, 12, 4
"""An access in one word, from the lowest bits on: the word of the record that has its address, its size in
bytes, the column where it is counted, and the instruction."""
DATA_READ, DATA_WRITE = 3, 6
"""The columns of accesses, followed by those of their misses."""


@njit(nogil=True, cache=True)
def lay_out(
    begin, end, first, words_of, address, nbytes, plain, listed_at, listed_words, listed, bits, largest,
    rows, fetches, accesses, fetches_before, accesses_before,
):  # fmt: skip
    """Write the rows of the plain blocks from `begin` to `end`, their fetches and accesses; there are so many
    fetches and accesses before. Returns how many of either are new."""
    f = n = 0
    for b in range(begin, end):
        if not plain[b] or words_of[b] >> WORD_BITS:
            continue
        row = (b - begin) << BLOCK_BITS
        rows[row + WORDS], rows[row + FETCHES_AT] = words_of[b], fetches_before + f
        rows[row + ACCESSES_AT] = accesses_before + n
        latest, k, last = -1, listed_at[b], listed_at[b + 1]
        for i in range(first[b], first[b + 1]):
            line, behind = address[i] >> bits, (address[i] + nbytes[i] - 1) >> bits
            if line != latest or line != behind:
                at = f << FETCH_BITS
                fetches[at + LINE], fetches[at + CROSSED], fetches[at + FETCHING] = line, behind - line, i
                f += 1
            latest = behind
            while k < last and instruction_of(listed[k]) == i:
                slot = slot_of(listed[k])
                if slot != REWRITE:
                    column = DATA_WRITE if slot == WRITE else DATA_READ
                    high = (i << COLUMN_BITS | column) << SIZE_BITS | min(size_of(listed[k]), largest)
                    accesses[n] = high << WORD_BITS | listed_words[k]
                    n += 1
                k += 1
            fetches[((f - 1) << FETCH_BITS) + BEFORE] = accesses_before + n
        rows[row + FETCHES] = fetches_before + f - rows[row + FETCHES_AT]
    return f, n


class PlainBlocks:
    """The plain blocks of one process image, and how often each was executed whole, for instruction lines
    of 2**`bits` bytes and accesses of at most `largest` bytes."""

    def __init__(self, bits: int, largest: int) -> None:
        self._bits = bits
        self._largest = largest
        self._first = np.zeros(1, np.int64)
        self._seen = 0
        self._rows = Column(np.int64)
        self._fetches = Column(np.int64)
        self._accesses = Column(np.int64)
        self.executions = np.zeros(1024, np.int64)

    def update(self, tables: StaticTables, listing: Listing) -> None:
        """Look at the blocks that are new, which are listed already."""
        seen, known = self._seen, tables.known
        if seen >= known:
            return
        first, arrays = tables.first, listing.arrays()
        rows = np.zeros((known - seen) << BLOCK_BITS, np.int64)
        fetches = np.zeros(int(first[known] - first[seen]) << FETCH_BITS, np.int64)
        accesses = np.zeros(int(arrays[1][known] - arrays[1][seen]), np.int64)
        address = tables.address.view(np.int64)
        asked: tuple[Any, ...] = (
            *(seen, known, first, tables.words, address, tables.bytes, *arrays, self._bits, self._largest),
            *(rows, fetches, accesses, self._fetches.length >> FETCH_BITS, self._accesses.length),
        )
        more_fetches, more_accesses = lay_out(*asked)
        self._rows.add(rows)
        self._fetches.add(fetches[: more_fetches << FETCH_BITS])
        self._accesses.add(accesses[:more_accesses])
        self.executions = grown(self.executions, known)
        self._first, self._seen = first, known

    def arrays(self) -> tuple[npt.NDArray[np.int64], ...]:
        """The rows of blocks, those of fetches, and accesses, as `reading.simulate_records` takes them."""
        return self._rows.data, self._fetches.data, self._accesses.data

    def add(self, table: npt.NDArray[Any]) -> None:
        """Add the executions of instructions and their accesses to a table of counts that has a row for
        each instruction."""
        rows = self._rows.data[: self._seen << BLOCK_BITS].reshape(-1, 1 << BLOCK_BITS)
        whole = self.executions[: self._seen]
        table[: self._first[self._seen], 0] += np.repeat(whole, np.diff(self._first[: self._seen + 1]))
        plain = rows[:, WORDS] > 0
        ends = np.append(rows[plain, ACCESSES_AT], self._accesses.length)
        accesses = self._accesses.data[: self._accesses.length] >> WORD_BITS + SIZE_BITS
        where = accesses >> COLUMN_BITS, accesses & (1 << COLUMN_BITS) - 1
        np.add.at(table, where, np.repeat(whole[plain], np.diff(ends)))
