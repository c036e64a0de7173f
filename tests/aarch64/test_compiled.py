"""AArch64 programs whose code compiled code translates: they behave as without, and counts are those of code
that Python translates. (What it writes: `engines/test_translate_aarch64_compiled.py`, on any machine.)"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from engines.contract import Runner
from engines.observed import Observed

from fixtures import Builder

MOST = 0.8
"""Of a program's blocks the compiled code makes more than this share: system calls, exclusive sequences and
loops of one block are left to Python."""


def both(tmp_path: Path, *command: str | Path, **options: Any) -> tuple[Observed, Observed]:
    """Runs whose code Python translates, and compiled code."""
    seen = []
    for compiled in (False, True):
        (tmp_path / str(compiled)).mkdir()
        run = Runner("translate", tmp_path / str(compiled), cache=False, aslr=False)
        seen.append(run(*command, compiled=compiled, **options))
    first, second = seen
    assert not first.result["stats"]["by compiled code"]
    assert (first.stdout, first.result["exit"]) == (second.stdout, second.result["exit"])
    stats = second.result["stats"]
    assert stats["by compiled code"] > MOST * stats["blocks translated"]
    return first, second


@pytest.mark.parametrize("options", [{}, {"interval_size": 1000}])
def test_a_static_program_with_threads(options: dict[str, int], builder: Builder, tmp_path: Path) -> None:
    """Also where each block takes its length from a budget."""
    _, seen = both(tmp_path, builder.hosted("pthreads", "-static"), **options)
    assert (seen.stdout, seen.result["exit"]) == (b"total 10000\n", 0)
    spins = [thread["functions"].get("spin", 0) for thread in seen.processes[0]["threads"]]
    assert spins == [0] + [2 * turns + 2 for turns in (1000, 2000, 3000, 4000)]


def test_a_dynamic_program(tmp_path: Path) -> None:
    """Two that execute the same: blocks, and how often each."""
    first, second = both(tmp_path, "/bin/busybox", "echo", "hello")
    assert second.stdout == b"hello\n"
    assert first.result["instructions"] == second.result["instructions"]
    assert [t["digest"] for t in first.threads] == [t["digest"] for t in second.threads]


def test_cpython(tmp_path: Path) -> None:
    """A large one: lookups that miss stop far away from most landings, whose ways there are shared."""
    run = Runner("translate", tmp_path, cache=False)
    seen = run(sys.executable, "-I", "-S", "-c", "print(6 * 7)", compiled=True)
    assert (seen.stdout, seen.result["exit"], seen.result["warnings"]) == (b"42\n", 0, [])
