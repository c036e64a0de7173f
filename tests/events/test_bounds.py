"""Branches of a region, wherever it begins and ends: each of those between its bounds, with where it led."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from events.test_kernels import blocks, stream

from livepro.events import Analysis
from livepro.events.kernels import BRANCH_KINDS, Kernel
from livepro.events.spans.dividing import RegionRecords
from livepro.events.spans.feeding import Feed, Slice
from livepro.events.spans.flattening import Turns
from livepro.events.spans.listing import Listing
from livepro.events.spans.region import RegionFeed

TRANSFERS = np.array([kind >= 0 for kind in BRANCH_KINDS], np.uint8)
CHUNKS = 4

Branch = tuple[int, int, int]
"""The instruction, whether it was taken, where it led."""


class Noting:
    """Takes spans: the branches, and how many instructions had ended before each."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Branch]] = []
        self._ended = 0

    def take(self, part: Slice) -> None:
        events, which = part.events, slice(part.first_branch, part.last_branch)
        columns = (events.branches[which], events.taken[which], events.targets[which])
        self.found += [(self._ended, branch) for branch in zip(*(c.tolist() for c in columns), strict=True)]

    def cut(self, retired: int) -> None:
        self._ended += retired

    @property
    def branches(self) -> list[Branch]:
        return [branch for _, branch in self.found]


class Branches(Analysis):
    """The same by an analysis"""

    def state(self) -> dict[str, Any]:
        return {"rows": np.zeros((1 << 12, 3), np.int64), "n": np.zeros(1, np.int64)}

    def branch(state, thread, instruction, address, target, taken, kind):  # type: ignore[no-untyped-def]
        state.rows[state.n[0]] = (instruction, taken, target)
        state.n[0] += 1


def whole(chunks: list[np.ndarray[Any, Any]]) -> tuple[list[tuple[int, Branch]], list[int]]:
    """All branches of a stream with their instructions' numbers from 0, and the instructions up to the end of
    each chunk: of the stream as a whole, each instruction an interval."""
    tables, noting, ends = blocks().tables(), Noting(), []
    feed = Feed(noting, Listing(), Turns(), TRANSFERS, 1)
    feed.see(np.concatenate(chunks).view(np.int64), tables)
    feed.finish(tables)
    for number in range(len(chunks)):
        part = Feed(Noting(), Listing(), Turns(), TRANSFERS)
        part.see(np.concatenate(chunks[: number + 1]).view(np.int64), tables)
        part.finish(tables)
        ends.append(part.instructions)
    return noting.found, ends


def drawn(seed: int) -> tuple[list[np.ndarray[Any, Any]], list[tuple[int, int, int, int]], list[Any]]:
    """A stream in chunks; regions: where each begins and ends, and before which chunks that is told (as early
    or as late as it can be); all of its branches."""
    generator = random.Random(seed)
    chunks = [stream(blocks(), 12, 10 * seed + part) for part in range(CHUNKS)]
    found, ends = whole(chunks)

    def told(position: int) -> int:
        latest = sum(end <= position for end in ends[:-1])
        return generator.choice([0, latest])

    regions = []
    for _ in range(60):
        begin, end = sorted(generator.sample(range(ends[-1]), 2))
        if generator.random() < 0.5:
            end = min(begin + generator.randrange(1, 4), ends[-1] - 1)
        if generator.random() < 0.5:
            end = min((at for at in ends[:-1] if at > begin), default=end)
        regions.append((begin, end, *sorted((told(begin), told(end)))))
    return chunks, regions, found


@pytest.mark.parametrize("seed", range(10))
def test_of_spans(seed: int) -> None:
    chunks, regions, found = drawn(seed)
    tables = blocks().tables()
    for begin, end, first, second in regions:
        noting = Noting()
        feed = RegionFeed(noting, Listing(), Turns(), TRANSFERS, waiting=True)
        for number, words in enumerate(chunks):
            for position, when in ((begin, first), (end, second)):
                if when == number:
                    feed.bound(position, None, tables if number else None)
            feed.see(words.view(np.int64), tables)
        feed.finish(tables)
        wanted = [branch for number, branch in found if begin <= number < end]
        assert noting.branches == wanted, (begin, end, first, second)


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(10))
def test_of_records(seed: int, tmp_path: Path) -> None:
    chunks, regions, found = drawn(seed)
    tables = blocks().tables()
    kernel = Kernel(Branches(), "branches", tmp_path)
    for begin, end, first, second in regions:
        state, last = kernel.state(), np.array([-1, 0], np.int64)
        kernel.grow(state, len(tables.address))
        records = RegionRecords(waiting=True)
        for number, words in enumerate(chunks):
            pieces = []
            for position, when in ((begin, first), (end, second)):
                if when == number:
                    pieces += list(records.bound(position, None, tables))
            for piece, lower in (*pieces, *records.pieces(words.view(np.int64), tables)):
                kernel.consume(piece, 0, tables, last, state, lower)
        rows = dict(zip(kernel.names, state, strict=True))["rows"][: state[kernel.names.index("n")][0]]
        wanted = [branch for number, branch in found if begin <= number < end]
        assert [tuple(row) for row in rows.tolist()] == wanted, (begin, end, first, second)
