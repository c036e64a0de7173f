"""Programs on AArch64, under each engine: their output is right, and counts agree.

An emulated processor is slow: some ten thousand instructions a second under the block
engine, a thousand or two under the step engine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from engines.contract import Runner
from engines.observed import TIMEOUT, converse

import livepro
from fixtures import Builder, Fixture, freestanding
from livepro.engines import can_translate

FAST = ("block", *(["translate"] if can_translate("aarch64") else []))
ENGINES = ("step", *FAST)
_CAP = 30_000  # instructions that the step engine is given


def reference(program: Path) -> int:
    """Instructions of a program without libc, by qemu-user (the guest's host counts them)."""
    return int(subprocess.run(["qemu-count", program], check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("fixture", freestanding(), ids=lambda fixture: fixture.name)
def test_qemu_user_agrees(fixture: Fixture, level: str, builder: Builder, tmp_path: Path) -> None:
    program = builder.freestanding(fixture, level)
    shared = tmp_path / program.name  # where the host sees it
    shared.write_bytes(program.read_bytes())
    shared.chmod(0o755)
    expected = reference(shared)
    native = subprocess.run([program], capture_output=True, timeout=TIMEOUT)
    for engine in FAST if expected > _CAP else ENGINES:
        directory = tmp_path / engine
        directory.mkdir()
        seen = Runner(engine, directory)(program)
        assert (engine, seen.result["instructions"], seen.stdout) == (engine, expected, native.stdout)
        assert seen.result["exit"] == native.returncode


@pytest.mark.parametrize("engine", ENGINES)
def test_a_static_program_with_threads(engine: str, builder: Builder, tmp_path: Path) -> None:
    """Its start-up has exclusive sequences in it, and so have its locks."""
    seen = Runner(engine, tmp_path)(builder.hosted("pthreads", "-static"))
    assert (seen.stdout, seen.result["exit"]) == (b"total 10000\n", 0)
    spins = [thread["functions"].get("spin", 0) for thread in seen.processes[0]["threads"]]
    assert spins == [0] + [2 * turns + 2 for turns in (1000, 2000, 3000, 4000)]


@pytest.mark.parametrize("engine", FAST)
def test_cpython(engine: str, tmp_path: Path) -> None:
    """A large dynamic program."""
    seen = Runner(engine, tmp_path)(sys.executable, "-I", "-S", "--version")
    assert seen.stdout.startswith(b"Python 3.")
    assert seen.result["exit"] == 0


def test_cpython_begun_under_the_step_engine(tmp_path: Path) -> None:
    """Which would take minutes: it is let go in the middle, and goes on as if nothing had been."""
    steps = [("sleep", 10), ("detach", ""), ("await", "Python 3.")]
    seen = converse(steps, [sys.executable, "-I", "-S", "--version"], tmp_path / "capped.json", engine="step")
    assert seen.faults == []
    assert seen.result["warnings"] == []
    assert seen.result["instructions"] > 1_000
    assert seen.stderr == b""


def test_nothing_for_other_machines_is_imported() -> None:
    """The decoder of x86-64 code, whose package need not be installed here."""
    script = (
        "import sys, livepro; r = livepro.run(['true']); print(r.exit, r.instructions > 10_000);"
        "print([name for name in sys.modules if 'iced' in name or 'livepro' in name and 'x86' in name])"
    )
    command = [sys.executable, "-c", script]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(livepro.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT)
    assert done.stdout.splitlines() == ["0 True", "[]"], done.stderr
