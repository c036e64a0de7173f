"""What a simulator counts of each instruction of an image, and where its code begins other lines."""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.cachesim.simulating import count_runs
from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.column import Column, grown
from livepro.events.spans.feeding import Slice
from livepro.events.spans.listing import Listing


class Counted:
    """Counts by instruction, in a row of `columns` for each; the first column is that of executions."""

    def __init__(self, columns: int) -> None:
        self.runs = np.zeros(1024, np.int64)
        """How many more times an instruction was executed than the one before."""
        self.counts = np.zeros((1024, columns), np.int64)
        self.missed = np.zeros(columns, np.int64)
        """All misses and mispredictions, by column."""

    def executed(self, part: Slice, instructions: int) -> None:
        """Count executions; there are so many `instructions` by now."""
        self.grow(instructions)
        events = part.events
        count_runs(events.begins, events.ends, events.marks, part.begin, part.end, self.runs)

    def grow(self, instructions: int) -> None:
        """Have rows for so many instructions."""
        if len(self.runs) <= instructions:
            self.runs = grown(self.runs, instructions + 1)
            self.counts = grown(self.counts, instructions + 1)

    def table(self, instructions: int) -> npt.NDArray[np.int64]:
        """The counts of that many instructions."""
        counts = grown(self.counts, instructions)[:instructions].copy()
        counts[:, 0] = np.cumsum(grown(self.runs, instructions))[:instructions]
        return counts


@njit(nogil=True, cache=True)
def find_following(begin, end, first, address, nbytes, bits, following):
    """Note for the blocks from `begin` to `end` where code may fetch another line than before, of 2**`bits`
    bytes, and for each of them the one that follows; in rows counted from 0."""
    origin = first[begin]
    for b in range(begin, end):
        latest, fetching = -1, -1
        for i in range(first[b], first[b + 1]):
            line, behind = address[i] >> bits, (address[i] + nbytes[i] - 1) >> bits
            if line != latest or line != behind:
                if fetching >= 0:
                    following[fetching - origin] = i
                fetching = i
            latest = behind
        if fetching >= 0:
            following[fetching - origin] = first[b + 1]


class Fetches:
    """What is static of the fetches of one image, with lines of 2**`bits` bytes: for the instructions at
    which a block may fetch another line than before, by their numbers, the `following` one (the block's end,
    if there is none)."""

    def __init__(self, bits: int) -> None:
        self.listing = Listing()
        self.bits = bits
        self._seen = 0
        self._following = Column(np.int64)

    def update(self, tables: StaticTables) -> None:
        """Look at the blocks that are new."""
        seen, known = self._seen, tables.known
        if seen >= known:
            return
        first = tables.first
        following = np.zeros(first[known] - first[seen], np.int64)
        address = tables.address.view(np.int64)
        find_following(seen, known, first, address, tables.bytes, self.bits, following)
        self._following.add(following)
        self._seen = known

    @property
    def following(self) -> npt.NDArray[np.int64]:
        """See the class."""
        return self._following.data
