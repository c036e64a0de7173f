"""Basic block vectors: where intervals are cut, in which order a vector lists its blocks, what is dropped."""

from __future__ import annotations

from itertools import pairwise

import model_builders as mb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livepro.analyses.bbv import CutRule, Dialect, Summary, next_cut, summary, vectors
from livepro.errors import LiveproError

BLOCKS = mb.table(
    (0x3000, [mb.ADD, mb.JNZ]),
    (0x1000, [mb.REP_STOSB, mb.FLDCW, mb.RET]),
    (0x2000, [mb.RET]),
)


def cuts(rule: CutRule, instructions: int) -> list[int]:
    """Sizes of the whole intervals of a thread of so many instructions."""
    at = [0]
    while rule.next_cut(at[-1]) <= instructions:
        at.append(rule.next_cut(at[-1]))
    return [b - a for a, b in pairwise(at)]


def test_exact_cuts_at_multiples() -> None:
    assert cuts(CutRule(1000), 3500) == [1000, 1000, 1000]
    assert cuts(CutRule(1), 3) == [1, 1, 1]
    assert cuts(CutRule(1000), 999) == []


def test_exp_bbv_cuts_when_the_count_is_greater() -> None:
    rule = CutRule(1000, Dialect.EXP_BBV)
    assert cuts(rule, 3001) == [1001, 1000, 1000]
    assert cuts(rule, 3000) == [1001, 1000]
    assert cuts(rule, 1000) == []
    assert cuts(CutRule(1, Dialect.EXP_BBV), 4) == [2, 1, 1]


@given(st.integers(1, 50), st.integers(0, 1000))
def test_exp_bbv_cuts_are_those_of_its_counter(size: int, position: int) -> None:
    """Counting as `handle_overflow` does, from the start to the first cut behind `position`."""
    counter = done = 0
    while True:
        counter, done = counter + 1, done + 1
        if counter > size:
            counter -= size
            if done > position:
                break
    assert next_cut("exp-bbv", size, position) == done


@given(st.integers(1, 10**12), st.integers(0, 10**15))
def test_exact_cut_is_the_next_multiple(size: int, position: int) -> None:
    cut = next_cut("exact", size, position)
    assert cut % size == 0
    assert 0 < cut - position <= size


@pytest.mark.parametrize("size", [0, -5])
def test_interval_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(LiveproError, match=f"interval size {size} is too small"):
        CutRule(size)


def test_unknown_dialect_is_refused() -> None:
    with pytest.raises(LiveproError, match=r"no basic block vector dialect 'pin'.*exact and exp-bbv"):
        CutRule(10, "pin")  # type: ignore[arg-type]


def found(*args: object) -> list[list[tuple[int, int]]]:
    return [
        list(zip(v.ids.tolist(), v.counts.tolist(), strict=True))
        for v in vectors(BLOCKS, *args)  # type: ignore[arg-type]
    ]


THREAD = mb.thread(  # 10 + 10 + 4 instructions
    [9, 1, 3], intervals=[mb.interval({0: 9, 2: 1}), mb.interval({0: 7, 1: 3}), mb.interval({0: 2, 2: 2})]
)


def test_pairs_come_in_order_of_address_and_the_last_interval_is_kept() -> None:
    whole = [[(3, 1), (1, 9)], [(2, 3), (1, 7)], [(3, 2), (1, 2)]]
    assert found(THREAD) == whole
    assert found(THREAD, CutRule(10)) == whole


def test_exp_bbv_drops_the_unfinished_interval() -> None:
    rule = CutRule(9, Dialect.EXP_BBV)  # cuts at 10, 19, 28
    at_cuts = mb.thread([12, 1, 1], intervals=[mb.interval({0: 10}), mb.interval({0: 9})])
    assert found(at_cuts, rule) == [[(1, 10)], [(1, 9)]]
    short = mb.thread([12, 1, 1], intervals=[mb.interval({0: 10}), mb.interval({0: 8})])
    assert found(short, rule) == [[(1, 10)]]
    assert found(mb.thread([1, 0, 0], intervals=[mb.interval({0: 2})]), rule) == []


def test_blocks_at_one_address_keep_the_order_of_their_ids() -> None:
    table = mb.table((0x2000, [mb.NOP]), (0x1000, [mb.RET]), (0x1000, [mb.JNZ]))
    (vector,) = vectors(table, mb.thread([1, 1, 1], intervals=[mb.interval({0: 1, 1: 1, 2: 1})]))
    assert vector.ids.tolist() == [2, 3, 1]


def test_summary_counts_vectors_or_divides_as_exp_bbv() -> None:
    assert summary(BLOCKS, THREAD, CutRule(10)) == Summary(
        intervals=3, interval_size=10, instructions=24, rep_iterations=0, rep_instructions=1, fldcw=1
    )
    assert summary(BLOCKS, THREAD, CutRule(6, Dialect.EXP_BBV)).intervals == 4
