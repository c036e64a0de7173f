"""`pytest --livepro` on a sample project, as its users run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = """
import os
import pytest

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def test_fib(instructions):
    with instructions() as n:
        fib(8 + int(os.environ.get("MORE", 0)))
    assert n.instructions > 1000

def test_twice(instructions):
    for n in (1, 2):
        with instructions("empty") as n:
            pass

def test_plain():
    pass
"""


def run(where: Path, *options: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", *options],
        cwd=where,
        # (Not as a worker of the pytest that runs this test.)
        env={**{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}, **environment},
        capture_output=True,
        text=True,
        timeout=500,
    )
    return done.returncode, done.stdout + done.stderr


def counts(file: Path) -> dict[str, int]:
    return dict(json.loads(file.read_text())["tests"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    return tmp_path


def test_off_until_it_is_asked_for(project: Path) -> None:
    status, out = run(project)
    assert status == 0
    assert "2 passed, 1 skipped" in out
    assert "instructions are counted with --livepro only" in out


def test_gates_a_project(project: Path) -> None:
    base, again = project / "base.json", project / "again.json"
    status, out = run(project, "--livepro", "--livepro-save-baseline", str(base))
    assert (status, "3 passed" in out) == (0, True), out
    found = counts(base)
    assert list(found) == [
        "test_sample.py::test_fib",
        "test_sample.py::test_twice [empty #2]",
        "test_sample.py::test_twice [empty]",
    ]
    assert re.search(r"^ +- +[\d,]+ +new  test_sample.py::test_fib$", out, re.MULTILINE)
    # The interpreter's own, what the memory allocator does included, is within some dozens.
    assert all(abs(count) < 1000 for name, count in found.items() if "empty" in name)

    # A worker of pytest-xdist is measured, too; fib(9) makes 109 calls, fib(8) 67.
    options = ["--livepro", "--livepro-baseline", str(base), "--livepro-soft", "5%", "-n", "1", "-k", "fib"]
    status, out = run(project, *options, "--livepro-save-baseline", str(again), MORE="1")
    assert (status, "1 failed" in out) == (1, True), out
    assert "against the baseline's" in out
    assert "it may grow by 5 %" in out
    assert counts(again) == {}  # a regression is no baseline


@pytest.mark.long
def test_each_of_two_workers_is_measured(project: Path) -> None:
    """pytest-xdist deals tests out one by one; every worker counts those that it gets."""
    base = project / "base.json"
    split = ["--livepro", "-n", "2", "-k", "fib or plain"]
    status, out = run(project, *split, "--livepro-save-baseline", str(base))
    assert (status, "2 passed" in out) == (0, True), out
    assert list(counts(base)) == ["test_sample.py::test_fib"]
    status, out = run(project, *split, "--livepro-baseline", str(base), "--livepro-soft", "5%", MORE="1")
    assert (status, "1 failed, 1 passed" in out) == (1, True), out


def test_what_is_wrong_is_told(project: Path) -> None:
    status, out = run(project, "--livepro", "--livepro-soft", "much")
    assert (status, "'much' is not a part" in out) == (4, True)
    status, out = run(project, "--livepro", "--livepro-baseline", "absent.json")
    assert (status, "absent.json cannot be read" in out) == (4, True)
