"""Counters by block, whatever half of a thread's area they are in, and room between what is in use."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.cache import FIXED, SMALLEST
from livepro.engines.translate.counting import sparse
from livepro.engines.translate.counting.allowances import AllowingCounters
from livepro.engines.translate.counting.counters import PARTS, Cells, ThreadCounters
from livepro.engines.translate.flush.generations import CacheFile
from livepro.engines.translate.translator.unrolled import Unrolled, copies_of

FIRST = layout.COUNTERS // 8


class Space:
    """What a thread's counters ask for."""

    def __init__(self, *generations: Cells) -> None:
        self.counting = generations
        self.unrolled = Unrolled()

    def lengths(self) -> np.ndarray:
        return np.array([2, 3, 5, 7])


def ran(counters: ThreadCounters, size: int) -> list[int]:
    """What has been executed, by slot."""
    slots, times = counters.ran()
    assert (np.diff(slots) > 0).all()
    assert (times != 0).all()
    out = np.zeros(size, np.int64)
    out[slots] = times
    return out.tolist()


def test_counts_stay_with_their_blocks() -> None:
    """Blocks 0 to 3 count in the first half, then 3 and 1 in the other, at first along with the former."""
    words = np.zeros(FIRST + layout.MAX_SLOTS, np.uint64)
    former, current = Cells(PARTS[0], original=True), Cells(PARTS[1])
    space = Space(former)
    counters = ThreadCounters(words, space)
    assert [former.take(slot) for slot in range(4)] == [0, 1, 2, 3]
    words[FIRST : FIRST + 4] = (10, 20, 0, 40)
    assert counters.all().tolist() == [10, 20, 0, 40]
    space.counting = (former, current)
    assert [current.take(slot) for slot in (3, 1, 3)] == [PARTS[1].start, PARTS[1].start + 1, PARTS[1].start]
    words[FIRST + PARTS[1].start : FIRST + PARTS[1].start + 2] = (1, 2)
    for _ in range(2):  # folding again adds nothing
        assert counters.all().tolist() == ran(counters, 4) == [10, 22, 0, 41]
        assert counters.all(2).tolist() == [10, 22]
        assert [counters.of(slot) for slot in range(5)] == [10, 22, 0, 41, 0]
        assert counters.instructions(space.lengths()) == 20 + 66 + 7 * 41
        counters.fold(former)
        assert not words[FIRST : FIRST + 4].any()
    space.counting = (current,)
    assert counters.all().tolist() == [10, 22, 0, 41]
    assert ran(counters, 4) == [10, 22, 0, 41]
    counters.clear()
    assert not words.any()
    assert not counters.all().any()
    assert not any(ran(counters, 4))


@pytest.mark.parametrize("kind", [ThreadCounters, AllowingCounters])
def test_further_copies_count_for_their_block(kind: type[ThreadCounters]) -> None:
    """Slots 2 and 4 are counters of further copies of block 1, slot 3 of one of block 0; the copies of
    block 1 have been dropped, and there are new ones."""
    words = np.zeros(layout.AREA_SIZE // 8, np.uint64)
    former, current = Cells(PARTS[0], original=True), Cells(PARTS[1])
    space = Space(former)
    space.unrolled.add([2, 3], [1, 0])
    space.unrolled.add([4], [1])
    counters = kind(words, space)
    for slot in range(6):
        former.take(slot)
    words[FIRST : FIRST + 6] = (10, 20, 30, 40, 50, 60)
    assert counters.all(6).tolist() == [50, 100, 0, 0, 0, 60]
    assert counters.all(2).tolist() == [10, 20]  # of a moment when there were no others
    assert [counters.of(slot) for slot in (0, 1, 5)] == [50, 100, 60]
    space.counting = (former, current)
    for slot in (1, 4):
        current.take(slot)
    at = FIRST + PARTS[1].start
    words[at : at + 2] = (1, 2)
    for _ in range(2):
        assert counters.all(6).tolist() == ran(counters, 6) == [50, 103, 0, 0, 0, 60]
        assert counters.of(1) == 103
        counters.fold(former)
    assert len(space.unrolled) == 3
    copy = space.unrolled.copy()
    space.unrolled.add([5], [1])
    assert (copy.of(1), space.unrolled.of(1), copy.of(5)) == ([2, 4], [2, 4, 5], [])


def test_how_often_a_block_is_copied() -> None:
    assert [copies_of(length) for length in (1, 2, 6, 8, 11, 12, 23, 24, 100)] == [4, 4, 4, 3, 3, 2, 2, 1, 1]


def test_allowances_are_no_counts() -> None:
    """Nor are those of copies that have been dropped: they are given back."""
    words = np.zeros(layout.AREA_SIZE // 8, np.uint64)
    signed = words.view(np.int64)
    touched = words.view(np.uint8)[layout.TOUCHED :]
    former, current = Cells(PARTS[0], original=True), Cells(PARTS[1])
    space = Space(former)
    counters = AllowingCounters(words, space)
    for slot in range(4):
        former.take(slot)
    more = layout.MORE // 8
    signed[FIRST : FIRST + 4], signed[more : more + 4] = (-3, -60, 0, 0), (13, 60, 7, 0)
    touched[0] = 1
    assert counters.all().tolist() == [10, 0, 7, 0]
    assert counters.unspent() == 3 * 2 + 60 * 3
    space.counting = (former, current)
    for slot in (3, 1):
        current.take(slot)
    at = PARTS[1].start
    signed[FIRST + at : FIRST + at + 2], signed[more + at : more + at + 2] = (-1, -2), (4, 2)
    touched[at // layout.GROUP] = 1
    assert counters.unspent() == 3 * 2 + 60 * 3 + 1 * 7 + 2 * 3
    assert counters.counted(np.array([0, 1, at])).tolist() == [10, 0, 3]
    assert counters.fold(former) == 3 * 2 + 60 * 3
    assert not signed[FIRST : FIRST + 4].any()
    assert not signed[more : more + 4].any()
    assert counters.all().tolist() == [10, 0, 7, 3]
    assert counters.withdraw() == (7 + 3, 1 * 7 + 2 * 3)
    assert counters.unspent() == 0
    assert counters.all().tolist() == [10, 0, 7, 3]
    counters.clear()
    assert not words.any()


def told(counters: ThreadCounters) -> dict[int, int]:
    """What is new, by slot."""
    slots, times = sparse.total(counters.news())
    return dict(zip(slots.tolist(), times.tolist(), strict=True))


@pytest.mark.parametrize("kind", [ThreadCounters, AllowingCounters])
def test_what_is_new_is_told_once(kind: type[ThreadCounters]) -> None:
    """Whether it was executed by copies that there are, by further copies (slot 2 is one of block 1), or by
    copies that have been dropped."""
    words = np.zeros(layout.AREA_SIZE // 8, np.uint64)
    touched = words.view(np.uint8)[layout.TOUCHED :]
    former, current = Cells(PARTS[0], original=True), Cells(PARTS[1])
    space = Space(former)
    space.unrolled.add([2], [1])
    counters = kind(words, space)
    for slot in range(4):
        former.take(slot)
    assert told(counters) == {}
    words[FIRST : FIRST + 4] = (10, 20, 5, 0)
    touched[0] = 1
    assert told(counters) == {0: 10, 1: 25}
    assert told(counters) == {}
    words[FIRST + 3] = 7
    space.counting = (former, current)
    current.take(3)
    words[FIRST + PARTS[1].start] = 2
    touched[PARTS[1].start // layout.GROUP] = 1
    counters.fold(former)
    space.counting = (current,)
    assert told(counters) == {3: 9}
    words[FIRST + PARTS[1].start] += 1
    assert told(counters) == {3: 1}


def test_of_who_has_stopped_what_is_not_touched_anew_is_not_looked_at() -> None:
    words = np.zeros(layout.AREA_SIZE // 8, np.uint64)
    touched, more = words.view(np.uint8)[layout.TOUCHED :], layout.MORE // 8
    cells = Cells(PARTS[0], original=True)
    for slot in range(4):
        cells.take(slot)
    counters = AllowingCounters(words, Space(cells))
    words[more : more + 4], touched[0] = (1, 2, 3, 4), 1
    counters.leave()
    assert not touched.any()
    words[more] = 9
    assert told(counters) == {0: 1, 1: 2, 2: 3, 3: 4}
    touched[0] = 1
    assert told(counters) == {0: 8}


class File:
    """Stands for a file that is shared with a process."""

    def __init__(self, size: int) -> None:
        self.base, self.size = 1 << 30, size
        self.map = mmap.mmap(-1, size)


def test_the_largest_gap_is_found_and_the_rest_given_back() -> None:
    file = File(SMALLEST * 8)
    cache_file = CacheFile(file, None)  # type: ignore[arg-type]
    base, end = file.base, file.base + file.size - FIXED
    assert cache_file.largest_gap([]) == (base, end)
    taken = [(base + SMALLEST + 1, base + SMALLEST + 9), (base + 5 * SMALLEST, base + 6 * SMALLEST)]
    page = layout.PAGE
    assert cache_file.largest_gap(taken) == (base + SMALLEST + page, base + 5 * SMALLEST)
    assert cache_file.largest_gap([(base + page, end)]) is None
    file.map[: SMALLEST * 7] = b"\1" * (SMALLEST * 7)
    cache_file.release(taken)
    assert file.map[SMALLEST] == file.map[5 * SMALLEST] == file.map[6 * SMALLEST - 1] == 1
    assert file.map[0] == file.map[SMALLEST + page] == file.map[6 * SMALLEST] == 0
