"""What analyses see of a region by numbers of instructions: that part of the whole stream, event by event."""

from __future__ import annotations

import os
import platform
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from events.streams import ENVIRONMENT, record
from events.test_kernels import Log
from events.test_streams import DIFFERENT, ENGINES

from fixtures import Builder, Fixture, assembly
from livepro import isa
from livepro.engines import engine_class
from livepro.engines.base import EngineOptions
from livepro.engines.region import Region
from livepro.events.kernels import Kernel
from livepro.events.recording import Recording
from livepro.events.states import States
from livepro.session import Session

FEW_WORDS = 40 * 16
"""Bytes of chunks that are full again and again."""
ROWS = 1 << 20  # kernels do not ask whether there is room
ORDINARY = (
    *("accesses", "avx512", "exclusive", "jump_table", "mid_block", "rep_fault", "segments"),
    *("signal_nested", "smc_mprotect", "trap_flag", "x87"),
)
LATE = ("mov_ss",)
"""The instruction behind is executed in the same step, which a warning says."""
LARGE = ("long_blocks",)
"""Thousands of instructions of a block are stepped up to where a region begins within it."""


class Told(Log):
    """All events"""

    def state(self) -> dict[str, Any]:
        return {"rows": np.zeros((ROWS, 3), np.int64), "n": np.zeros(1, np.int64)}

    def result(self, state: Any, program: Any) -> list[list[int]]:
        rows: list[list[int]] = state.rows[: state.n[0]].tolist()
        return rows


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    return Kernel(Told(), "told", tmp_path_factory.mktemp("kernels"))


def windows(*, long: bool) -> list[Any]:
    """Fixtures of one thread."""
    chosen = [
        f for f in assembly() if f.name not in (*DIFFERENT, *LATE, *LARGE) and (f.name in ORDINARY) != long
    ]
    chosen = [f for f in chosen if len(f.processes) == 1 and len(f.threads) < 2]
    return [pytest.param(f, id=f.name) for f in chosen if not (f.heavy or f.missing or f.varies)]


def seen(engine: str, program: Path, args: Any, kernel: Kernel, region: Region, memory: int) -> Any:
    """The region's events (kind, address, size), and how many instructions were counted."""
    machine = isa.for_machine(platform.machine())
    recording = Recording([States(kernel)], memory=memory)
    options = EngineOptions(stream=recording.recorder, region=region)
    started = engine_class(recording.check(engine, machine, region), machine.name)(machine, options)
    recording.watch(started)
    command = [str(program), *args]
    environment = {name.encode(): value.encode() for name, value in ENVIRONMENT.items()}
    found = recording.finish(
        Session(started, machine).run(command[0], command, environment, aslr=False, interval_size=0)
    )
    if found.exit is None:
        os.waitpid(found.processes[0].pid, 0)
    told = found.analyses["told"]
    return (told[0]["result"] if told else []), found.instructions, found.warnings


def compare(
    engine: str, fixture: Fixture, builder: Builder, kernel: Kernel, directory: Path, times: int
) -> None:
    program = builder.assembly(fixture)
    whole = record(engine, [program, *fixture.args], directory / "whole")["threads"]
    (events,) = whole
    numbers = np.cumsum([kind == "I" for kind, _, _ in events])
    rows = [["ILS".find(kind), address, size] for kind, address, size in events]
    executed = int(numbers[-1])
    assert len(rows) < ROWS
    generator = random.Random(fixture.name)
    for turn in range(times):
        skip = generator.randrange(executed)
        count = generator.choice([1, 2, generator.randrange(1, executed), 0])
        memory = FEW_WORDS if turn % 2 else 1 << 20
        found, counted, _ = seen(
            engine, program, fixture.args, kernel, Region(skip=skip, count=count), memory
        )
        end = min(skip + count, executed) if count else executed
        wanted = [row for number, row in zip(numbers.tolist(), rows, strict=True) if skip < number <= end]
        assert (counted, found) == (end - skip, [row for row in wanted if row[0] >= 0]), (skip, count, turn)


@pytest.mark.some(3)
@pytest.mark.parametrize("fixture", windows(long=False))
def test_windows(fixture: Fixture, builder: Builder, kernel: Kernel, tmp_path: Path) -> None:
    compare(ENGINES[-1], fixture, builder, kernel, tmp_path, 6)


@pytest.mark.long
@pytest.mark.parametrize("fixture", windows(long=True))
def test_windows_of_all_fixtures(fixture: Fixture, builder: Builder, kernel: Kernel, tmp_path: Path) -> None:
    compare(ENGINES[-1], fixture, builder, kernel, tmp_path, 8)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES[:-1])
@pytest.mark.parametrize("fixture", windows(long=False))
def test_windows_of_stepping_engines(
    engine: str, fixture: Fixture, builder: Builder, kernel: Kernel, tmp_path: Path
) -> None:
    compare(engine, fixture, builder, kernel, tmp_path, 3)
