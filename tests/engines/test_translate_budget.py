"""Long intervals: blocks are allowed much at once, and boundaries are met to the instruction all the same."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import livepro
from fixtures import Builder
from livepro.engines.translate import layout
from livepro.engines.translate.counting.allowances import EVENLY, FEW, LARGEST_CHUNK, AllowingCounters
from livepro.engines.translate.counting.budget import ENDLESS, INTERVAL, SHARE, Budget
from livepro.engines.translate.counting.counters import PARTS, Cells
from livepro.engines.translate.engine import TranslateEngine
from livepro.engines.translate.translator.unrolled import Unrolled

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


class Blocks:
    """Stands for a space of blocks of so many instructions, and carries out what their copies do."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.cells = Cells(PARTS[0], original=True)
        self.counting = (self.cells,)
        self.unrolled = Unrolled()
        self._lengths = np.array(lengths)
        for slot in range(len(lengths)):
            self.cells.take(slot)
        self.words = np.zeros(layout.AREA_SIZE // 8, np.uint64)
        self._signed = self.words.view(np.int64)

    def lengths(self) -> np.ndarray:
        return self._lengths

    def execute(self, slot: int) -> bool:
        """Count one execution. Whether its copy stops: there is nothing left for it."""
        words, length = self._signed, int(self._lengths[slot])
        cell, more = layout.COUNTERS // 8 + slot, layout.MORE // 8 + slot
        budget, supply, chunk = (at // 8 for at in (layout.BUDGET, layout.SUPPLY, layout.CHUNK))
        if words[cell] < 0:
            words[cell] += 1
            return False
        self.words.view(np.uint8)[layout.TOUCHED + slot // layout.GROUP] = 1
        portion = words[more] * words[layout.PORTION // 8] >> layout.PORTION_SHIFT
        for taken in (portion + words[chunk], words[chunk]):  # what others have left is not taken back here
            if words[supply] >= taken * length:
                words[supply] -= taken * length
                words[more] += taken
                words[cell] = 1 - taken
                return False
        words[more] += 1
        words[budget] -= length
        return bool(words[budget] < 0)


def test_what_goes_beyond_is_met_by_a_stop() -> None:
    """Whatever is executed in whatever order, and given back: what is left is known to the
    instruction, and is not negative before a block stops."""
    rng = random.Random(1)
    blocks = Blocks([rng.randrange(1, 40) for _ in range(60)])
    counters = AllowingCounters(blocks.words, blocks)
    for keeper in (None, counters):
        budget = Budget(blocks.words, keeper)
        assert budget.left(INTERVAL) == budget.left(SHARE) == ENDLESS
        executed = counters.all()
        for turn in range(12):
            left = {INTERVAL: rng.randrange(400_000), SHARE: rng.randrange(1_000_000)}
            for purpose, instructions in left.items():
                budget.set(purpose, instructions)
            stops = 0
            while True:
                slot = rng.randrange(60) if rng.random() < 0.1 else rng.randrange(turn, turn + 8)
                length = int(blocks.lengths()[slot])
                if keeper is None:
                    blocks.words.view(np.int64)[layout.BUDGET // 8] -= length
                    stopped = blocks.words.view(np.int64)[layout.BUDGET // 8] < 0
                else:
                    stopped = blocks.execute(slot)
                    executed[slot] += 1
                left = {purpose: each - length for purpose, each in left.items()}
                if rng.random() < 0.001:
                    back = rng.randrange(-5, 6)
                    budget.give(back)
                    left = {purpose: each + back for purpose, each in left.items()}
                    assert {purpose: budget.left(purpose) for purpose in left} == left
                if stopped:
                    assert {purpose: budget.left(purpose) for purpose in left} == left
                    budget.withdraw(length)
                    assert {p: budget.spent(p) for p in left} == {p: n < 0 for p, n in left.items()}
                    if min(left.values()) < 0:
                        break
                    budget.level()
                    stops += 1
                else:
                    assert min(left.values()) >= 0
            assert stops <= 1
        assert counters.all().tolist() == executed.tolist()


def test_few_stops_are_made_to_the_end_of_a_long_interval() -> None:
    """Blocks are allowed more at once where much is left, and less when it was much that they left."""
    rng = random.Random(2)
    blocks = Blocks([rng.randrange(1, 12) for _ in range(40)])
    budget = Budget(blocks.words, AllowingCounters(blocks.words, blocks))
    budget.set(INTERVAL, 2_000_000)
    executed, chunks = 0, {int(blocks.words[layout.CHUNK // 8])}
    stops = 0
    while not budget.spent(INTERVAL):
        slot = min(int(rng.expovariate(0.3)), 39)
        length = int(blocks.lengths()[slot])
        executed += length
        if blocks.execute(slot):
            budget.withdraw(length)
            budget.level()
            chunks.add(int(blocks.words[layout.CHUNK // 8]))
            stops += 1
    assert executed + budget.left(INTERVAL) == 2_000_000
    assert stops <= 4
    assert len(chunks) > 1


def test_blocks_are_allowed_much_from_the_beginning_of_a_long_interval() -> None:
    """There may be no stop in it, from which on that could be known better."""
    blocks = Blocks([4])
    budget = Budget(blocks.words, AllowingCounters(blocks.words, blocks))
    allowed = []
    for instructions in (10_000_000, 1_000_000_000, 100_000_000_000):
        budget.set(INTERVAL, instructions)
        allowed.append(int(blocks.words[layout.CHUNK // 8]))
    assert 5 < allowed[0] < allowed[1] < allowed[2] == LARGEST_CHUNK
    assert [blocks.execute(0) for _ in range(LARGEST_CHUNK)] == [False] * LARGEST_CHUNK
    assert budget.left(INTERVAL) == 100_000_000_000 - 4 * LARGEST_CHUNK


def test_a_long_block_is_allowed_less_at_once_than_short_ones() -> None:
    """One that is reached late in an interval, too: as many of it as of the others would be too much."""
    blocks = Blocks([1, 2, 1000])
    budget = Budget(blocks.words, AllowingCounters(blocks.words, blocks))
    budget.withdraw(1)  # as at the end of an interval in which nothing but the shortest was executed
    budget.set(INTERVAL, 1_000_000)
    budget.level()
    stops = executed = 0
    for slot in itertools.chain(itertools.repeat(0, 400_000), itertools.repeat(2)):
        executed += int(blocks.lengths()[slot])
        if blocks.execute(slot):
            budget.withdraw(int(blocks.lengths()[slot]))
            if budget.spent(INTERVAL):
                break
            budget.level()
            stops += 1
    assert executed + budget.left(INTERVAL) == 1_000_000
    assert stops <= 3


def test_nobody_who_has_stopped_is_taken_for_one_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a stop is where it is found; what is out of a copy's way does not begin there."""
    behind: list[bool] = []
    ended = TranslateEngine.process_ended

    def look(engine: Any, process: Any) -> None:
        space = engine.table.spaces[process]
        for stub in space.linker.exits:
            place = space.memory.locate(stub + 1)
            behind.append(place is not None and place.block.counting(stub + 1))
        ended(engine, process)

    monkeypatch.setattr(TranslateEngine, "process_ended", look)
    livepro.run(["/bin/true"], engine="translate", interval_size=20_000_000, cache=False)
    assert len(behind) > 100
    assert not any(behind)


def test_instructions_are_kept_from_allowances_only_near_the_end() -> None:
    blocks = Blocks([10])
    budget = Budget(blocks.words, AllowingCounters(blocks.words, blocks))
    kept = [layout.BUDGET // 8, layout.SUPPLY // 8]
    budget.set(INTERVAL, 10_000_000)
    assert blocks.words[kept].tolist() == [0, 10_000_000]
    budget.set(INTERVAL, FEW - 1)
    assert blocks.words[kept].tolist() == [FEW - 1, 0]


def test_allowances_are_as_large_as_befits_all_blocks_that_had_some() -> None:
    """Also when only one of them had any when they were last withdrawn."""
    blocks = Blocks([10] * 40)
    budget = Budget(blocks.words, AllowingCounters(blocks.words, blocks))
    chunks = []
    for executed in (range(40), range(1)):
        budget.set(INTERVAL, 10_000_000)
        for slot in executed:
            assert not blocks.execute(slot)
        budget.withdraw(10)
        budget.set(INTERVAL, 10_000_000)
        budget.level()
        chunks.append(int(blocks.words[layout.CHUNK // 8]))
    assert chunks == [10_000_000 // (EVENLY * 400), 10_000_000 // (EVENLY * 375)]
