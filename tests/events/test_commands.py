"""Analyses leave out what is reset and paused, as the counts do."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from cachesim.test_cachegrind import livepro as command
from cachesim.test_regions import SEEN
from tools import needed

import livepro
from fixtures import Builder, assembly
from livepro.cachesim.model import CacheSim
from livepro.engines.control import Control

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")

(COMMANDS,) = (fixture for fixture in assembly() if fixture.name == "commands")
COUNTED = 2 + 1 + 3 * 1000 + 7 + 7 + 7 + 2 + 2 + 1 + 7 + 1 + 6 + 3
"""What commands.S says."""


def seen(tmp_path: Path) -> str:
    (tmp_path / "seen.py").write_text(SEEN)
    return f"{tmp_path / 'seen.py'}:Seen"


def agree(result: Any, own: str) -> list[tuple[int, int]]:
    """Instructions and loads of each process image: all analyses say the same, and the counts, too. (An
    instruction that modifies memory loads, for the simulator.)"""
    out = []
    for process in result.processes:
        counted = sum(thread.instructions(process.table) for thread in process.threads)
        state, simulated, characterised = (
            [
                e["result"]
                for e in result.analyses[name]
                if (e["pid"], e["image"]) == (process.pid, process.image)
            ]
            for name in (own, "cachesim", "mica")
        )
        if counted:
            (totals,) = (one["totals"] for one in simulated)
            assert [one["total"]["instructions"] for one in characterised] == [totals["Ir"]] == [counted]
            assert state[0]["instructions"] == [counted]
            assert totals["Dr"] == state[0]["accesses"][0]
            out.append((counted, totals["Dr"]))
    return out


@pytest.mark.parametrize("engine", ["step", "block", "translate"])
def test_commands_from_inside(engine: str, builder: Builder, tmp_path: Path) -> None:
    """The program resets, pauses and goes on between instructions that its source names. Of those counted
    four read memory: two answers and what they are compared with."""
    program, own = builder.assembly(COMMANDS), seen(tmp_path)
    result = livepro.run(
        [str(program)], engine=engine, analyses=[own, "cachesim", "mica"], cache=str(tmp_path / "kept")
    )
    assert result.exit == 0
    assert agree(result, own) == [(COUNTED, 4)]


def simulated(result: Any) -> list[Any]:
    """What the simulator tells of each process image, and that it counts what is counted."""
    found = [entry["result"] for entry in result.analyses["cachesim"]]
    counted = sum(
        thread.instructions(process.table) for process in result.processes for thread in process.threads
    )
    assert sum(one["totals"]["Ir"] for one in found) == counted
    return [{key: one[key] for key in ("totals", "lines", "functions")} for one in found]


def test_a_filtered_stream_is_divided_by_commands(builder: Builder, tmp_path: Path) -> None:
    """The thread's own caches are empty where the simulator's are, and what it has executed is told apart."""
    program = [str(builder.assembly(COMMANDS))]
    reduced, whole = (
        simulated(livepro.run(program, aslr=False, engine="translate", analyses=[analysis], cache=False))
        for analysis in (CacheSim(), CacheSim(filtered=False))
    )
    assert reduced == whole
    assert reduced[0]["totals"]["Ir"] == COUNTED


class Commands(threading.Thread):
    """Gives some commands at drawn times, then writes to a pipe, if there is one."""

    def __init__(self, seed: int, most: float, pipe: Path | None) -> None:
        super().__init__(daemon=True)
        self._generator = random.Random(seed)
        self._most = most
        self._pipe = pipe
        self.given: list[str] = []
        self._control: Control | None = None

    def begin(self, control: Control) -> None:
        self._control = control
        self.start()

    def run(self) -> None:
        with contextlib.nullcontext() if self._pipe is None else self._pipe.open("w") as written:
            self._command()
            if written is not None:
                written.write(".")

    def _command(self) -> None:
        assert self._control is not None
        for _ in range(12):
            time.sleep(self._generator.uniform(0, self._most))  # where it meets the program is to be chance
            given = self._generator.choice(("reset", "pause", "resume", "resume"))
            try:
                self._control.perform(given)
            except livepro.LiveproError:
                return  # the program has ended
            self.given.append(given)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 8))]
)
@pytest.mark.parametrize("program", ["gzip", "threads"])
def test_commands_at_any_time(program: str, seed: int, builder: Builder, tmp_path: Path) -> None:
    """Wherever they meet the threads: the program differs from run to run, but what is said of one run does
    not differ."""
    needed("gzip", "gzip")
    data = tmp_path / "data"
    data.write_bytes(random.Random(seed).randbytes(200_000).hex().encode())
    pipe = None
    asked = ["gzip", "-k", str(data)]
    if program == "threads":
        os.mkfifo(pipe := tmp_path / "pipe")
        asked = ["sh", "-c", f"exec {builder.hosted('busy_threads', '-pthread')} < {pipe}"]
    commands, own = Commands(seed, 0.2, pipe), seen(tmp_path)
    result = livepro.run(asked, analyses=[own, "cachesim", "mica"], control=commands.begin)
    commands.join()
    assert result.exit == 0
    assert commands.given
    agree(result, own)
    assert result.warnings == ()


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 8))])
@pytest.mark.parametrize("program", ["gzip", "threads"])
def test_filtered_streams_are_divided_at_any_time(
    program: str, seed: int, builder: Builder, tmp_path: Path
) -> None:
    """Wherever commands meet the threads, which simulate their caches themselves."""
    pipe = None
    data = tmp_path / "data"
    data.write_bytes(random.Random(seed).randbytes(200_000).hex().encode())
    asked = [needed("gzip", "gzip"), "-k", str(data)]
    if program == "threads":
        os.mkfifo(pipe := tmp_path / "pipe")
        asked = ["sh", "-c", f"exec {builder.hosted('busy_threads', '-pthread')} < {pipe}"]
    commands = Commands(seed, 0.2, pipe)
    result = livepro.run(asked, analyses=["cachesim"], control=commands.begin)
    commands.join()
    assert (result.exit, result.warnings) == (0, ())
    assert commands.given
    for one in simulated(result):
        totals = one["totals"]
        assert 0 <= totals["D1mr"] <= totals["Dr"] <= totals["Ir"]


@pytest.mark.parametrize("asked", ["mica:interval_size=1000", "mica:analyses=itypes"])
def test_what_cannot_leave_anything_out_says_so(asked: str, tmp_path: Path, builder: Builder) -> None:
    """Intervals are cut of the whole run, counters do not say when."""
    done = command("run", "--analysis", asked, "--", builder.assembly(COMMANDS), cwd=tmp_path)
    assert done.returncode == 0
    assert f"{asked} tells of the whole run, though that was reset or paused." in done.stderr
