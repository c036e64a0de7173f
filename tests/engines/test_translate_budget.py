"""Long intervals: the budget is spread over cells, and boundaries are met to the instruction all the same."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import livepro
from fixtures import Builder
from livepro.engines.translate import layout
from livepro.engines.translate.budget import ENDLESS, INTERVAL, SHARE, Budget

SOURCE = """
.intel_syntax noprefix
.globl _start
_start: mov ecx, 30000000       // 1
a:      dec ecx                 // 30 M turns: 2 and, but for the last, 1 + 3
        jz b
        jmp a2
        .skip 40
a2:     nop
        nop
        jmp a
b:      mov ecx, 20000000       // 1
c:      nop                     // 20 M turns of 3
        dec ecx
        jnz c
        mov eax, 60             // 3
        xor edi, edi
        syscall
"""
A = 6
FIRST = 1 + 30_000_000 * A - 4


def executed(count: int) -> int:
    """Of the program's first `count` instructions, those in the loop at c (its first turn begins in b)."""
    return min(max(count - FIRST - 1, 0), 60_000_000)


@pytest.mark.parametrize("size", [50_000_000, 60_000_001])
def test_vectors_are_cut_to_the_instruction(size: int, builder: Builder, tmp_path: Path) -> None:
    source = tmp_path / "phases.S"
    source.write_text(SOURCE)
    result = livepro.run([str(builder.build(source))], engine="translate", interval_size=size)
    (process,) = result.processes
    (thread,) = process.threads
    total = FIRST + 1 + 60_000_000 + 3
    assert result.instructions == total
    table = process.table
    shapes = list(zip(table.length.tolist(), table.size.tolist(), strict=True))
    in_loop = {shapes.index((4, 10)), shapes.index((3, 5))}  # from b, and from c on
    inside = 0
    for number, interval in enumerate(thread.intervals):
        last = min((number + 1) * size, total)
        assert interval.instructions == last - number * size
        counts = dict(zip(interval.rows.tolist(), interval.counts.tolist(), strict=True))
        inside += sum(counts.get(row, 0) for row in in_loop)
        # The first turn is part of the block at b, whose first instruction is none of the loop's.
        assert inside - (last > FIRST) == executed(last)


def test_cells_are_filled_by_what_was_used_of_them_over_as_long_as_there_is_to_come() -> None:
    """And not by the last few blocks alone, which is all that has been seen when an interval begins."""
    words = np.zeros(layout.COUNTERS // 8, np.uint64)
    budget = Budget(words, 2)
    cells = words.view(np.int64)[layout.BUDGET // 8 :]
    budget.set(INTERVAL, 1_000_000)
    cells[:2] -= (750_000 - 100, 250_000 - 100)
    budget.set(INTERVAL, 200)
    cells[1] -= 99
    budget.set(INTERVAL, 1_000_000)
    assert 740_000 < cells[0] < 760_000
    assert budget.left(INTERVAL) == 1_000_000


def test_what_goes_beyond_is_met_by_a_negative_cell() -> None:
    """Whatever is executed in whatever order: while no cell is negative, neither is what is left."""
    rng = random.Random(1)
    words = np.zeros(layout.COUNTERS // 8, np.uint64)
    cells = words.view(np.int64)[layout.BUDGET // 8 :][: layout.BUDGET_CELLS]
    budget = Budget(words, layout.BUDGET_CELLS)
    assert budget.left(INTERVAL) == budget.left(SHARE) == ENDLESS
    for _ in range(50):
        left = {INTERVAL: rng.randrange(1_000_000), SHARE: rng.randrange(1_000_000)}
        for purpose, instructions in left.items():
            budget.set(purpose, instructions)
        stops = 0
        hot = rng.sample(range(len(cells)), 3)
        while min(left.values()) >= 0:
            cell, length = rng.choice(hot), rng.randrange(1, 40)
            cells[cell] -= length
            left = {purpose: each - length for purpose, each in left.items()}
            if rng.random() < 0.001:
                back = rng.randrange(-5, 6)
                budget.give(back)
                left = {purpose: each + back for purpose, each in left.items()}
            assert {purpose: budget.left(purpose) for purpose in left} == left
            if (cells < 0).any():
                budget.level()
                stops += 1
            else:
                assert min(left.values()) >= 0
        assert stops < 60
