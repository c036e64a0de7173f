"""Commands that a program gives itself: in C, Python and Java, with livepro and without."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from engines.observed import REPOSITORY

from fixtures import ROOT, Builder
from livepro import inprocess

ENGINES = ("step", "block", "translate")


def run(report: Path, engine: str, *command: str | Path) -> tuple[str, dict[str, object]]:
    """What a command prints under livepro, and the report."""
    livepro = [sys.executable, "-m", "livepro", "run", "--quiet", "--engine", engine, "--json", str(report)]
    # (An environment of its own: what is kept of other runs does not matter here.)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(report.parent)}
    done = subprocess.run(
        [*livepro, "--", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=REPOSITORY,
        env=environment,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout, json.loads(report.read_text())


def test_where_the_files_are(tmp_path: Path) -> None:
    def api(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "livepro", "api", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)

    assert api().stdout.split() == [str(inprocess.HEADER), str(inprocess.JAVA)]
    assert api("--c").stdout.split() == [str(inprocess.HEADER)]
    assert api("--java", tmp_path).stdout.split() == [str(tmp_path / "Livepro.java")]
    assert (tmp_path / "Livepro.java").read_text() == inprocess.JAVA.read_text()
    refused = api("--c", tmp_path / "nowhere")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Cannot write" in refused.stderr


def test_c_without_livepro(builder: Builder) -> None:
    program = builder.hosted("inprocess", "-static")
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"-1 -1 -1 -1 -1 0 0\n"


def test_the_header_is_c_and_cpp(tmp_path: Path) -> None:
    for name in ("use.c", "use.cc"):
        source = tmp_path / name
        source.write_text(f'#include "{inprocess.HEADER}"\nint main() {{ return livepro_reset() != -1; }}\n')
        program = tmp_path / f"{name}.program"
        flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-o", str(program)]
        subprocess.run(["gcc", *flags, str(source)], check=True)
        assert subprocess.run([program]).returncode == 0


def test_python_without_livepro() -> None:
    assert not inprocess.active()
    assert not inprocess.reset()
    assert not inprocess.snapshot("x")
    assert not inprocess.pause()
    assert not inprocess.resume()
    assert inprocess.instructions() is None
    assert inprocess.simd() is None
    assert inprocess.status() is None


PYTHON = """
import json
from livepro import inprocess
def work(n):
    for _ in range(n): pass
work(10)
found = [inprocess.active(), inprocess.reset()]
work(100)
found += [inprocess.snapshot("hundred"), inprocess.pause()]
work(100000)
found += [inprocess.resume(), inprocess.instructions(), inprocess.status()]
print(json.dumps(found))
"""


@pytest.mark.long(seconds=50)
def test_python_under_translate(tmp_path: Path) -> None:
    """(An interpreter's start takes the other engines minutes.)"""
    printed, report = run(tmp_path / "report.json", "translate", sys.executable, "-E", "-c", PYTHON)
    *done, counted, status = json.loads(printed)
    assert done == [True] * 5
    (snapshot,) = report["snapshots"]  # type: ignore[misc]
    assert snapshot["label"] == "hundred"
    # A turn of the loop takes some tens of instructions; the paused ones would be a million.
    assert 1000 < snapshot["instructions"] < counted < 500_000
    assert report["instructions"] > counted  # type: ignore[operator]
    assert (status["engine"], status["paused"], status["snapshots"]) == ("translate", False, 1)


# What a Java program's start costs most in is the compilers' threads.
SHORT = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Java class and a program that uses it, compiled."""
    directory = tmp_path_factory.mktemp("java")
    sources = [inprocess.JAVA, ROOT / "java" / "Iterations.java"]
    subprocess.run(["javac", "--release", "17", "-d", directory, *sources], check=True)
    return directory


def test_java_without_livepro(classes: Path) -> None:
    done = subprocess.run(["java", "-cp", classes, "Iterations"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["false false", *["-1"] * 10, "false false false true"]


def test_java_under_translate(classes: Path, tmp_path: Path) -> None:
    """Each iteration is counted alone. The loop is compiled by then, so most iterations are equal, to
    the instruction; some meet a call in the interpreter yet, or a safepoint, and when the compiler gets to
    do the last of its work is chance."""
    printed, report = run(tmp_path / "report.json", "translate", "java", *SHORT, "-cp", classes, "Iterations")
    first, *counts, last = printed.splitlines()
    assert (first, last) == ("true true", "true true true true")
    numbers = Counter(map(int, counts))
    ((_, times),) = numbers.most_common(1)
    assert min(numbers) > 4096
    assert times >= 5
    snapshots = report["snapshots"]
    assert [s["label"] for s in snapshots] == [f"iteration {i}" for i in range(10)]  # type: ignore[attr-defined]
    assert [s["resets"] for s in snapshots] == list(range(2, 12))  # type: ignore[attr-defined]
