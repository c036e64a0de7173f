"""Analyses of the event stream as users ask for them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fixtures import ROOT, Builder, assembly

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")

CACHE = tempfile.mkdtemp(prefix="livepro-tests-")
"""Compiled kernels, for all tests of a process."""

MINE = """
import numpy as np
from livepro.events import Analysis

class Stores(Analysis):
    "Bytes written"
    def __init__(self, least=1):
        self.least = least
    def state(self):
        return {"n": np.zeros(1, np.int64), "least": np.array([self.least])}
    def access(state, thread, instruction, address, size, write):
        if write and size >= state.least[0]:
            state.n[0] += size
    def result(self, state, program):
        return {"bytes": int(state.n[0])}

class Failing(Stores):
    def access(state, thread, instruction, address, size, write):
        if state.n[0] > 100:
            raise ValueError("enough")
        state.n[0] += 1

class Empty(Analysis):
    pass

class Wrong(Analysis):
    def access(self, address):
        pass
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def livepro(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "livepro", *map(str, arguments)],
        cwd=cwd,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT.parent),
            "XDG_CACHE_HOME": CACHE,
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("engine", "option", "bytes_"),
    [("translate", "", None), ("block", "", None), ("step", ":least=16", 512 + 16)],
)
def test_a_class_in_a_file(
    engine: str, option: str, bytes_: int | None, mine: Path, builder: Builder, tmp_path: Path
) -> None:
    from events.streams import record

    program = builder.assembly(next(f for f in assembly() if f.name == "accesses"))
    if bytes_ is None:
        (events,) = record("step", [program], tmp_path / "events")["threads"]
        bytes_ = sum(size for kind, _, size in events if kind == "S")
    asked = f"{mine}:Stores{option}"
    # Without the compiler the same source is plain Python.
    done = livepro(
        "run", "--engine", engine, "--analysis", asked, "--json", "out.json", "--", program,
        cwd=tmp_path, NUMBA_DISABLE_JIT="1" if engine == "step" else "0",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "out.json").read_text())["analyses"][asked]
    assert [row["result"] for row in told] == [{"bytes": bytes_}]
    assert f"bytes: {bytes_:,}" in done.stderr
    assert ("step and block engines record" in done.stderr) == (engine != "translate")


COPIED = """
import numpy as np
from numba import njit
from livepro.events import Analysis

@njit
def one():
    return 1

class Copied(Analysis):
    "Instructions"

    def state(self):
        return {"n": np.zeros(1, np.int64)}

    def instruction(state, thread, instruction, address, size):
        state.n[0] += one()
"""


def test_a_copy_of_a_file_is_compiled_anew(builder: Builder, tmp_path: Path) -> None:
    """What is kept of the first names that file's module."""
    program = builder.assembly(next(f for f in assembly() if f.name == "accesses"))
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "copied.py").write_text(COPIED)
        asked = f"{name}/copied.py:Copied"
        done = livepro("run", "--engine", "step", "--analysis", asked, "--", program, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("nothing", "There is no analysis 'nothing'"),
        ("absent.py:A", "There is no file absent.py"),
        ("absent.module:A", "cannot be imported"),
        ("mine.py:Other", "It has Stores, Failing, Empty, Wrong"),
        ("mine.py:Stores:most=3", "Its options are least=1"),
        ("mine.py:Empty", "has none of the functions access"),
        ("mine.py:Wrong", "It must take (state, thread, instruction, address, size, write)"),
    ],
)
def test_what_is_wrong_is_told_before_the_program_runs(
    asked: str, words: str, mine: Path, tmp_path: Path
) -> None:
    done = livepro("run", "--analysis", asked, "--", "touch", tmp_path / "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "ran").exists()


def test_an_analysis_that_fails_leaves_the_program_unharmed(mine: Path, tmp_path: Path) -> None:
    script = "for i in $(seq 20); do echo $i; done > out; sleep 0.2; echo done >> out"
    done = livepro("run", "--analysis", f"{mine}:Failing", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 2
    assert "failed (ValueError: enough)" in done.stderr
    assert (tmp_path / "out").read_text().split() == [*map(str, range(1, 21)), "done"]


def test_what_does_not_go_with_recording_is_refused(tmp_path: Path) -> None:
    asked = ("--analysis", "split", "--count", "1000", "--interval-size", "100")
    done = livepro("run", *asked, "--", "touch", tmp_path / "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert "--skip and --count yet" in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("asked", [["--analysis", "split"], ["--cachesim"]])
def test_without_the_compiler_the_extra_is_named(asked: list[str], tmp_path: Path) -> None:
    code = "import sys; sys.modules['numba'] = None; from livepro.cli.main import main\n"
    code += "sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", *asked, "--", "touch", tmp_path / "ran"],
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "livepro[events]" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_all_built_in_analyses_tell_something(tmp_path: Path) -> None:
    names = [line.split()[0] for line in livepro("analyses", cwd=tmp_path).stdout.splitlines()]
    assert {"pages", "strides", "indirect", "split", "cachesim"} <= set(names)
    options = [word for name in names for word in ("--analysis", name)]
    done = livepro("run", *options, "--json", "out.json", "--", "sh", "-c", "true & true", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    for name in names:
        assert len(report["analyses"][name]) == len(report["processes"]), name
    counted = [process["instructions"] for process in report["processes"]]
    assert [told["result"]["totals"]["Ir"] for told in report["analyses"]["cachesim"]] == counted


def test_memory_of_a_stream_that_waits(builder: Builder, tmp_path: Path) -> None:
    """With little of it the program waits more often; what analyses see is the same."""
    fixture = next(f for f in assembly("x86_64") if f.name == "million")
    for options in ((), ("--stream-memory", "1M")):
        words = (*options, "--cachesim", "--cachegrind-out-file", "/dev/null", "--json", "run.json")
        done = livepro("run", "-q", *words, "--", builder.assembly(fixture), cwd=tmp_path)
        assert done.returncode == 0
        (told,) = json.loads((tmp_path / "run.json").read_text())["analyses"]["cachesim"]
        assert told["result"]["totals"]["Ir"] == fixture.instructions == 1_000_000
    little = livepro(
        *("run", "--stream-memory", "10K", "--analysis", "pages", "--", "touch", tmp_path / "ran"),
        cwd=tmp_path,
    )
    assert little.returncode == 2
    assert "10000 bytes are too little for a stream" in little.stderr
    assert not (tmp_path / "ran").exists()
