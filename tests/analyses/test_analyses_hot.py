"""Hottest blocks, functions and modules against counts worked out by hand."""

from __future__ import annotations

import model_builders as mb

from livepro.analyses import hot
from livepro.analyses.hot import HotBlock, HotFunction, HotModule

BLOCKS = mb.table(
    (0x401000, [mb.ADD, mb.JNZ], "main", "/bin/prog"),
    (0x401004, [mb.RET], "main", "/bin/prog"),
    (0x500000, [mb.NOP, mb.NOP, mb.RET], "", "/lib/libc.so"),
    (0x600000, [mb.RET], "main", "/lib/libc.so"),
    (0x700000, [mb.NOP, mb.RET], "cold", "/bin/prog"),
)
ONE = mb.thread([10, 1, 5, 3, 0])  # 20, 1, 15, 3, 0 instructions: 39
TWO = mb.thread([0, 0, 1, 0, 0], partial=[(2, 2, 4), (4, 1, 2)])  # 3 + 8 in row 2, 2 in row 4: 13


def test_hottest_blocks_of_one_thread() -> None:
    found = hot.blocks(BLOCKS, ONE)
    assert [(b.id, b.instructions) for b in found] == [(1, 20), (3, 15), (4, 3), (2, 1)]
    assert found[0] == HotBlock(1, 0x401000, "main", "/bin/prog", 0x1000, 2, 10, 20, 20 / 39)


def test_threads_add_up_and_prefixes_count() -> None:
    found = hot.blocks(BLOCKS, ONE, TWO, limit=2)
    assert [(b.id, b.entries, b.instructions, b.share) for b in found] == [
        (3, 6, 26, 26 / 52),
        (1, 10, 20, 20 / 52),
    ]


def test_equally_hot_blocks_come_in_order_of_first_execution() -> None:
    assert [b.id for b in hot.blocks(BLOCKS, mb.thread([3, 6, 2, 6, 3]), limit=4)] == [1, 2, 3, 4]
    assert [b.id for b in hot.blocks(BLOCKS, mb.thread([0, 1, 0, 1, 0]))] == [2, 4]


def test_counts_beyond_53_bits_are_ordered_exactly() -> None:
    assert [b.id for b in hot.blocks(BLOCKS, mb.thread([0, 2**62, 0, 2**62 + 1, 0]), limit=1)] == [4]


def test_functions_of_the_same_name_in_two_modules_stay_apart() -> None:
    assert hot.functions(BLOCKS, ONE) == [
        HotFunction("main", "/bin/prog", 2, 21, 21 / 39),
        HotFunction("", "/lib/libc.so", 1, 15, 15 / 39),
        HotFunction("main", "/lib/libc.so", 1, 3, 3 / 39),
    ]
    assert [f.instructions for f in hot.functions(BLOCKS, ONE, TWO, limit=1)] == [26]


def test_modules() -> None:
    assert hot.modules(BLOCKS, ONE, TWO) == [
        HotModule("/lib/libc.so", 2, 29, 29 / 52),
        HotModule("/bin/prog", 3, 23, 23 / 52),
    ]


def test_nothing_executed() -> None:
    nothing = mb.thread([0, 0, 0, 0, 0])
    assert hot.blocks(BLOCKS, nothing) == []
    assert hot.functions(BLOCKS, nothing) == []
    assert hot.modules(BLOCKS) == []
    assert hot.blocks(BLOCKS, ONE, limit=0) == []
