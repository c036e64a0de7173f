"""Intervals beside analyses of the event stream: those that engines count, and what analyses told of each."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import livepro
from fixtures import Builder, assembly
from livepro.analyses.bbv import next_cut
from livepro.engines.stream import COUNT_SHIFT, FLAGS_SHIFT, GOES_ON, INTERRUPTED, PARTIAL
from livepro.engines.stream.blocks import StaticTables, StreamBlocks
from livepro.engines.stream.recorder import StreamThread
from livepro.events import Analysis
from livepro.isa.base import Isa
from livepro.model import RunResult

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")

PROGRAMS = ("nested_loops", "rep_movs", "rep_fault", "signal_nested", "mid_block", "fork")


class Loads(Analysis):
    """Loads and stores"""

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        return {"n": np.zeros(2, np.int64)}

    def access(state, thread, instruction, address, size, write):  # type: ignore[no-untyped-def]
        state.n[1 if write else 0] += 1

    def totals(self, state: Any) -> dict[str, int]:
        return {"loads": int(state.n[0]), "stores": int(state.n[1])}


class Kept(Analysis):
    """Keeps the records"""

    def __init__(self) -> None:
        self.seen: list[tuple[StreamThread, np.ndarray[Any, Any], StaticTables]] = []

    def consumer(self, name: str, isa: Isa) -> Any:
        return self

    def see(self, thread: StreamThread, words: np.ndarray[Any, Any], tables: StaticTables) -> None:
        self.seen.append((thread, words, tables))

    def told(self, image: object, process: object) -> None:
        return None


def built(name: str, builder: Builder) -> str:
    return str(builder.assembly(next(f for f in assembly() if f.name == name)))


def intervals(result: RunResult) -> list[list[tuple[int, dict[int, int]]]]:
    """Of each thread: instructions, and those of each block by its address."""
    return [
        [
            (
                one.instructions,
                {
                    int(process.table.address[row]): int(n)
                    for row, n in zip(one.rows, one.counts, strict=True)
                },
            )
            for one in thread.intervals
        ]
        for process in result.processes
        for thread in process.threads
    ]


@pytest.mark.some(7)
@pytest.mark.parametrize("engine", ["step", "block", "translate"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_those_that_engines_count(name: str, engine: str, builder: Builder) -> None:
    """(Blocks of thousands of instructions are not among them: where code records, they end earlier.)"""
    program = built(name, builder)
    for size, dialect in ((3, "exact"), (101, "exact"), (100, "exp-bbv"), (10**9, "exact")):
        options: dict[str, Any] = {"interval_size": size, "bbv_dialect": dialect}
        counted = livepro.run([program], engine="translate", **options)
        beside = livepro.run([program], engine=engine, analyses=[Loads], **options)
        assert intervals(beside) == intervals(counted)
        told = beside.analyses["Loads"]
        for process, entry in zip(beside.processes, told, strict=True):
            for thread, own in zip(process.threads, entry["intervals"], strict=True):
                assert own["tid"] == thread.tid
                assert {len(values) for values in own["values"].values()} <= {len(thread.intervals)}
            sums = [
                sum(sum(own["values"].get(key, ())) for own in entry["intervals"])
                for key in ("loads", "stores")
            ]
            assert sums == entry["result"]["n"]


def plainly(blocks: StreamBlocks, words: list[int], cut: Callable[[int], int]) -> list[Counter[int]]:
    """What each interval of a thread's records has executed, by block: an instruction at a time."""
    out, position, end, at = [Counter[int]()], 0, cut(0), 0
    while at < len(words):
        flags = words[at] >> FLAGS_SHIFT & 0xFF
        if flags & GOES_ON:
            at += 2
            continue
        block = blocks.blocks[words[at] & 0xFFFF_FFFF]
        count = words[at] >> COUNT_SHIFT if flags & PARTIAL else len(block.accesses)
        for _ in range(count):
            if position == end:
                out.append(Counter())
                end = cut(position)
            out[-1][block.number] += 1
            position += 1
        at += 1 + block.words(count + bool(flags & INTERRUPTED))
    return out


@pytest.mark.parametrize("name", [*PROGRAMS, pytest.param("long_blocks", marks=pytest.mark.long(seconds=50))])
def test_the_kernel_cuts_as_plain_python_does(name: str, builder: Builder) -> None:
    """In chunks of any length; the pieces end with the blocks in which intervals end."""
    from livepro.events.intervals import IntervalCutter

    kept = Kept()
    livepro.run([built(name, builder)], analyses=[kept])
    for thread in {thread for thread, *_ in kept.seen}:
        chunks = [(words, tables) for of, words, tables in kept.seen if of is thread]
        whole = [word for words, _ in chunks for word in words.tolist()]
        for size in (7, 50, 1000):
            if size == 7 and name == "long_blocks":
                continue

            def cut(position: int, size: int = size) -> int:
                return next_cut("exact", size, position)

            cutter, ended = IntervalCutter(cut), 0
            for words, tables in chunks:
                reached = 0
                for begin, end, here in cutter.pieces(thread, words, tables):
                    assert begin == reached < end
                    reached = end
                    ended += here
                assert reached == len(words)
            ended += len(cutter.finish())
            expected = plainly(thread.image.blocks, whole, cut)
            found = cutter.ended(thread)
            assert [Counter(dict(zip(b.tolist(), c.tolist(), strict=True))) for _, b, c in found] == expected
            assert len(found) == ended


def test_mica_has_the_same_intervals(builder: Builder) -> None:
    from livepro.mica.model import Mica

    program = built("nested_loops", builder)
    analyses = [Mica(("itypes", "stride"), interval_size=1000)]
    result = livepro.run([program], analyses=analyses, interval_size=1000)
    (thread,) = result.processes[0].threads
    (told,) = result.analyses["mica"]
    own = [one["instructions"] for one in told["result"]["threads"][0]["intervals"]]
    assert own == [one.instructions for one in thread.intervals]
    assert len(own) > 3


def test_a_run_that_was_reset_has_none(builder: Builder) -> None:
    result = livepro.run([built("commands", builder)], analyses=[Loads], interval_size=100)
    assert not any(thread.intervals for process in result.processes for thread in process.threads)
    assert any("there are none of one that was reset or paused" in warning for warning in result.warnings)


def test_they_are_of_the_whole_run(builder: Builder) -> None:
    with pytest.raises(livepro.LiveproError, match="--skip and --count yet"):
        livepro.run([built("straight", builder)], analyses=[Kept()], interval_size=5, count=3)
