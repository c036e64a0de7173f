"""What a live view is told agrees with the report, to the instruction."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from live.fake_engine import ADDPS, NOP, Clock, FakeEngine

from fixtures import Builder, assembly
from livepro import isa
from livepro.engines import engine_class
from livepro.engines.base import EngineOptions
from livepro.live import Collector, LiveRun
from livepro.live.timeline import Recorder
from livepro.live.tracked import Tracked
from livepro.model import RunResult
from livepro.model.live import Picture, Query
from livepro.results import build_processes
from livepro.ui.view import view

MACHINE = isa.for_machine(platform.machine())
ENGINES = ("step", "block", "translate")


def watched(engine_name: str, command: Sequence[str], every: float = 0.02) -> tuple[RunResult, Collector]:
    """Run a command with a collector that looks at it again and again from another thread."""
    engine = engine_class(engine_name, MACHINE.name)(MACHINE, EngineOptions())
    environment = dict(os.environb)
    failure: list[BaseException] = []

    def trace() -> None:
        try:
            engine.launch(command[0], command, environment, aslr=True)
            engine.run()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=trace)
    collector = Collector(engine, MACHINE, command)
    thread.start()
    before = 0
    while thread.is_alive():
        collector.refresh()
        total = collector.picture(Query()).whole.total
        assert total >= 0
        before = max(before, total)
        time.sleep(every)
    thread.join()
    assert not failure
    while collector.picture(Query()).unnamed or not collector.picture(Query()).ended:
        collector.refresh()
    processes = build_processes(engine.images, MACHINE)
    return RunResult(engine.name, tuple(command), 0, 1.0, 0, processes), collector


def check(result: RunResult, collector: Collector) -> None:
    """The collector's last picture has the counts of the report."""
    seen = collector.picture(Query(rows=10_000))
    run = view(result)
    assert seen.whole.total == result.instructions
    assert seen.whole_simd.total == run.counts.simd_total
    assert {g: m.total for g, m in seen.itypes} == dict(run.counts.itypes)
    assert {k: m.total for k, m in seen.simd} == {k: n for k, n in run.counts.simd.items() if n}
    assert {k: m.total for k, m in seen.simd_types} == {k: n for k, n in run.counts.simd_types.items() if n}
    assert sum(f.instructions.total for f in seen.functions) == result.instructions
    assert seen.distinct_blocks == sum(p.blocks for p in run.processes)
    threads = sorted((t.tid, t.instructions.total, t.simd.total, t.blocks) for t in seen.threads)
    assert threads == sorted(
        (t.tid, t.counts.instructions, t.counts.simd_total, t.blocks)
        for p in run.processes
        for t in p.threads
        if t.counts.instructions
    )
    for row in seen.threads[:4]:
        alone = collector.picture(Query(thread=row.number, rows=10_000))
        assert alone.selected.total == row.instructions.total
        assert sum(f.instructions.total for f in alone.functions) == row.instructions.total
    hot = seen.blocks[0]
    assert (hot.instructions.total, hot.executions.total) == (run.hot[0].instructions, run.hot[0].executions)
    listing = collector.picture(Query(block=hot.number)).listing
    assert sum(line.executions.total for line in listing) == hot.instructions.total


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "name", ["threads_join", "fork", "execve_thread", "exit_middle", "signal_segv", "sse"]
)
def test_counts_are_those_of_the_report(name: str, engine: str, builder: Builder) -> None:
    fixture = next(f for f in assembly() if f.name == name)
    if fixture.missing:
        pytest.fail(f"this machine lacks {fixture.missing}")
    program = str(builder.assembly(fixture))
    result, collector = watched(engine, [program, *fixture.args])
    assert result.instructions == fixture.instructions or fixture.fuzzy  # threads_join waits in a loop
    check(result, collector)


def test_real_programs_with_several_processes() -> None:
    result, collector = watched("translate", ["/bin/sh", "-c", "ls / | sort | md5sum; true"], every=0.25)
    assert len(result.processes) > 4
    check(result, collector)


def made() -> tuple[FakeEngine, Collector, Clock]:
    engine, clock = FakeEngine(), Clock()
    return engine, Collector(engine, MACHINE, ["prog"], clock=clock), clock


def test_rates_are_of_the_last_two_seconds() -> None:
    engine, collector, clock = made()
    thread = engine.thread(1)
    engine.codes = [NOP * 10]
    for second in range(10):
        engine.entries[id(thread)] = [100 * min(second, 5)]
        collector.refresh()
        clock.now += 1
    seen = collector.picture(Query())
    assert (seen.whole.total, seen.whole.rate) == (5000, 0.0)
    engine.entries[id(thread)] = [700]
    collector.refresh()
    seen = collector.picture(Query())
    assert (seen.whole.total, seen.whole.rate) == (7000, 1000.0)
    assert seen.threads[0].instructions == seen.functions[0].instructions == seen.blocks[0].instructions
    assert seen.blocks[0].executions.rate == 100.0


def test_another_numbering_of_the_blocks_changes_no_count() -> None:
    engine, collector, clock = made()
    one, two = engine.thread(1), engine.thread(2)
    engine.codes = [NOP, NOP * 2, NOP * 3, NOP * 4]
    engine.entries[id(one)] = [5, 0, 7, 0]
    engine.entries[id(two)] = [0, 0, 1, 0]
    engine.partial[id(one)] = {(3, 2): 6}
    collector.refresh()
    first = collector.picture(Query())
    assert first.whole.total == 5 + 21 + 12 + 3
    # The blocks 0, 2 and 3 stay, under the numbers 0, 1 and 2; block 1 never ran.
    engine.numbering, engine.former = object(), [0, 2, 3]
    engine.codes = [engine.codes[n] for n in engine.former]
    engine.entries[id(one)], engine.entries[id(two)] = [5, 8, 0], [0, 1, 0]
    engine.partial[id(one)] = {(2, 2): 6}
    clock.now += 1
    collector.refresh()
    second = collector.picture(Query())
    assert second.whole.total == first.whole.total + 3
    assert second.whole.rate == first.whole.total + 3  # all of it came in the last second
    assert second.distinct_blocks == 3
    assert sum(b.instructions.total for b in second.blocks) == second.whole.total


def test_the_beginning_of_a_block_counts_in_its_own_instructions_only() -> None:
    engine, collector, _ = made()
    thread = engine.thread(1)
    engine.codes = [NOP * 4]
    engine.entries[id(thread)] = [10]
    engine.partial[id(thread)] = {(0, 1): 3, (0, 2): 1}
    collector.refresh()
    seen = collector.picture(Query())
    assert seen.whole.total == 45
    assert [(b.executions.total, b.instructions.total) for b in seen.blocks] == [(14, 45)]
    listing = collector.picture(Query(block=seen.blocks[0].number)).listing
    assert [line.executions.total for line in listing] == [14, 11, 10, 10]
    # The engine takes a count back: the thread left the block early.
    engine.entries[id(thread)] = [9]
    engine.partial[id(thread)] = {(0, 1): 4, (0, 2): 1}
    collector.refresh()
    seen = collector.picture(Query(block=seen.blocks[0].number))
    assert seen.whole.total == 42
    assert [line.executions.total for line in seen.listing] == [14, 10, 9, 9]


def test_blocks_that_wait_to_be_described_are_counted_and_said_to_wait() -> None:
    engine, clock = FakeEngine(), Clock()
    collector = Collector(engine, MACHINE, ["prog"], clock=clock, budget=0.0)
    thread = engine.thread(1)
    engine.codes = [NOP] * 100
    engine.entries[id(thread)] = [*range(1, 100), 100_000]
    collector.refresh()
    seen = collector.picture(Query())
    assert seen.whole.total == 99 * 100 // 2 + 100_000
    assert 0 < seen.unnamed < 5000  # the hottest came first
    while collector.picture(Query()).unnamed:
        collector.refresh()
    types = Counter({group: m.total for group, m in collector.picture(Query()).itypes})
    assert types["nop"] == seen.whole.total


def test_blocks_that_the_engine_is_giving_up_are_described_by_its_record() -> None:
    """The code cache of an image that has ended is closed while a view asks for its blocks."""
    engine, collector, clock = made()
    one, two = engine.thread(1), engine.thread(2)
    engine.codes = [NOP, NOP * 2, NOP * 3]
    engine.entries[id(one)], engine.entries[id(two)] = [0, 0, 5], [0, 7, 2]
    engine.partial[id(two)] = {(2, 1): 4}
    engine.gone = True
    collector.refresh()
    seen = collector.picture(Query())
    assert (seen.whole.total, seen.unnamed) == (15, 15)  # of the second thread nothing yet
    engine.gone = False
    engine.numbering, engine.former, engine.settled = object(), [1, 2], True
    engine.codes = engine.codes[1:]
    engine.entries[id(one)], engine.entries[id(two)] = [0, 5], [7, 2]
    engine.partial[id(two)] = {(1, 1): 4}
    clock.now += 1
    collector.refresh()
    seen = collector.picture(Query())
    assert (seen.whole.total, seen.unnamed) == (15 + 14 + 6 + 4, 0)
    assert sorted((b.executions.total, b.instructions.total) for b in seen.blocks) == [(7, 14), (11, 25)]
    assert sum(t.instructions.total for t in seen.threads) == seen.whole.total


def test_behind_the_end_nothing_waits_long() -> None:
    """At the pace of a running program these blocks take 3000 / 16 looks of a quarter of a second."""
    engine = FakeEngine()
    collector = Collector(engine, MACHINE, ["prog"], budget=0.0)
    engine.codes = [NOP] * 3000
    engine.entries[id(engine.thread(1))] = [1] * 3000
    run = LiveRun(collector)
    with run:
        while run.picture is None:
            time.sleep(0.01)
        engine.settled = True
        run.end()
        until = time.monotonic() + 20
        while run.picture.unnamed and time.monotonic() < until:
            time.sleep(0.01)
        assert (run.picture.unnamed, run.picture.whole.total, run.failure) == (0, 3000, None)


def orders(seen: Picture) -> list[list[int]]:
    return [[t.tid for t in seen.threads], [b.number for b in seen.blocks]]


NOBODYS = 1 << 22
"""No thread has such a number, whose name would be asked for: PID_MAX_LIMIT, include/linux/threads.h."""


def test_lists_are_sorted_as_asked() -> None:
    engine, collector, clock = made()
    nine, three = NOBODYS + 9, NOBODYS + 3
    one, two = engine.thread(nine), engine.thread(three)
    engine.codes = [NOP, NOP * 5]
    engine.entries[id(one)], engine.entries[id(two)] = [1000, 0], [0, 10]
    collector.refresh()
    clock.now += 5
    engine.entries[id(two)] = [0, 60]
    collector.refresh()
    clock.now += 1
    collector.refresh()
    blocks = {b.offset: b.number for b in collector.picture(Query()).blocks}
    small, large = blocks[0x1000], blocks[0x1040]
    assert orders(collector.picture(Query())) == [[nine, three], [small, large]]
    assert orders(collector.picture(Query(by_rate=True))) == [[three, nine], [large, small]]
    assert orders(collector.picture(Query(thread_order="start", block_order="executions"))) == [
        [nine, three],
        [small, large],
    ]
    named = collector.picture(Query(thread_order="name", block_order="address"))
    assert orders(named) == [[three, nine], [small, large]]
    assert len(collector.picture(Query(rows=1)).threads) == 1
    assert collector.picture(Query(rows=1)).threads_total == 2


def test_a_thread_has_none_of_the_blocks_that_were_added_after_its_end() -> None:
    thread: Any = object()
    tracked = Tracked(thread, 1, np.array([5, 7]))
    assert tracked.executions(np.array([1, 3, 0])).tolist() == [7, 0, 5]


def test_a_timeline_ends_with_the_run_and_never_falls() -> None:
    engine, collector, clock = made()
    engine.codes = [NOP] * 3
    thread = engine.thread(1)
    recorder = Recorder()

    def look() -> None:
        clock.now += 1.0
        collector.refresh()
        recorder._add(collector.picture(Query()))

    engine.entries[id(thread)] = [1000, 10, 0]
    look()
    engine.entries[id(thread)] = [997, 10, 0]  # amid a block it was some instructions ahead
    clock.now += 1.0
    collector.conclude()
    look()
    look()
    line = recorder.timeline()
    assert line is not None
    assert line.seconds == (1.0, 2.0)
    assert line.instructions == line.threads[0].instructions == (1007, 1007)


def test_simd_counts_in_the_moment_it_was_executed_in() -> None:
    """Though its block is described looks later, and the engine has numbered all blocks anew meanwhile."""
    engine, clock = FakeEngine(), Clock()
    collector = Collector(engine, MACHINE, ["prog"], clock=clock, budget=0.0)
    recorder = Recorder()
    one, two = engine.thread(1), engine.thread(2)
    engine.codes = [NOP * 10] * 100 + [ADDPS * 2, ADDPS * 3]

    def look() -> Picture:
        clock.now += 1.0
        collector.refresh()
        recorder._add(seen := collector.picture(Query()))
        return seen

    engine.entries[id(one)] = [100] * 100 + [1, 0]
    engine.entries[id(two)] = [100] * 100 + [0, 5]
    look()
    engine.entries[id(one)][100] += 10
    assert look().whole_simd.total == 0  # the blocks that were executed least are not described yet
    engine.numbering, engine.former = object(), [*range(1, 102), 0]
    engine.codes = [engine.codes[n] for n in engine.former]
    for thread in (one, two):
        counts = engine.entries[id(thread)]
        engine.entries[id(thread)] = [counts[n] for n in engine.former]
    seen = look()
    engine.former = None
    while seen.unnamed:
        seen = look()
    line = recorder.timeline()
    assert line is not None
    last = 2 * 11 + 3 * 5
    assert line.simd == (2 + 15, *[last] * (len(line.simd) - 1))
    assert [thread.simd for thread in line.threads] == [
        (2, *[22] * (len(line.simd) - 1)),
        (15, *[15] * (len(line.simd) - 1)),
    ]
    assert [m.simd for m in seen.moments] == [17, 20, *[0] * (len(line.simd) - 2)]


def test_what_is_looked_at_anew_at_the_end_is_in_the_history_once() -> None:
    engine, collector, clock = made()
    engine.codes = [NOP, ADDPS]
    thread = engine.thread(1)
    engine.entries[id(thread)] = [100, 10]
    clock.now += 1.0
    collector.refresh()
    engine.limited = True
    clock.now += 1.0
    collector.refresh()
    engine.entries[id(thread)] = [150, 15]
    clock.now += 1.0
    collector.conclude()
    moments = collector.picture(Query()).moments
    assert [(m.instructions, m.simd) for m in moments] == [(110, 10), (0, 0), (55, 5)]
