"""A thousand threads at once: each has its own count, and attaching takes all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from attach.targets import Target
from engines.observed import observe

import livepro
from fixtures import Builder
from livepro.api import Result
from livepro.engines.live import Progress

SPIN = 2 * 100 + 2
"""Instructions of each thread's spin (fixtures/c/spin.h)."""
ENGINES = [
    "translate",
    pytest.param("block", marks=pytest.mark.long(seconds=40)),
    pytest.param("step", marks=pytest.mark.long(seconds=90)),
]
COUNT = 1000


@pytest.mark.parametrize("engine", ENGINES)
def test_each_is_counted(engine: str, builder: Builder, tmp_path: Path) -> None:
    program = builder.hosted("crowd", "-static")
    seen = observe([program, str(COUNT)], tmp_path / "out", engine=engine, stdin=b"x")
    assert seen.stdout == f"there\njoined {COUNT}\n".encode()
    assert (seen.faults, seen.result["warnings"]) == ([], [])
    spins = [thread["functions"].get("spin", 0) for thread in seen.threads]
    assert spins == [0] + [SPIN] * COUNT


@pytest.mark.parametrize("engine", ENGINES)
def test_all_are_taken_and_let_go(engine: str, builder: Builder) -> None:
    """Once while all wait, once until they end."""
    program = builder.hosted("crowd", "-static")
    with Target(program, str(COUNT)) as target:
        assert target.ready == "there\n"
        waiting = livepro.attach(target.pid, engine=engine, seconds=0.1)
        assert (len(waiting.processes[0].threads), spins(waiting)) == (COUNT + 1, [0] * (COUNT + 1))
        told = False

        def progress(now: Progress) -> None:
            nonlocal told
            if now.threads == COUNT + 1 and not told:  # all are watched now, and may go on
                told = True
                assert target.process.stdin is not None
                target.process.stdin.write("x")
                target.process.stdin.flush()

        result = livepro.attach(target.pid, engine=engine, progress=progress)
        assert target.process.wait(60) == 0
        assert spins(result) == [0] + [SPIN] * COUNT
        assert result.warnings == ()


def spins(result: Result) -> list[int]:
    """What each thread executed of `spin`, ascending."""
    (process,) = result.processes
    inside = [name == "spin" for name in process.table.function]
    return sorted(int(t.block_instructions(process.table)[inside].sum()) for t in process.threads)
