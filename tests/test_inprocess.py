"""Commands that a program gives itself: in C, Python and Java, with livepro and without."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from engines.observed import REPOSITORY

from fixtures import Builder
from livepro import inprocess

ENGINES = ("step", "block", "translate")


def run(report: Path, engine: str, *command: str | Path) -> tuple[str, dict[str, object]]:
    """What a command prints under livepro, and the report."""
    livepro = [sys.executable, "-m", "livepro", "run", "--quiet", "--engine", engine, "--json", str(report)]
    done = subprocess.run(
        [*livepro, "--", *map(str, command)], capture_output=True, text=True, timeout=120, cwd=REPOSITORY
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout, json.loads(report.read_text())


def test_c_without_livepro(builder: Builder) -> None:
    program = builder.hosted("inprocess", "-static")
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"-1 -1 -1 -1 -1 0 0\n"


def test_the_header_is_c_and_cpp(tmp_path: Path) -> None:
    for name in ("use.c", "use.cc"):
        source = tmp_path / name
        source.write_text(f'#include "{inprocess.HEADER}"\nint main() {{ return livepro_reset() != -1; }}\n')
        program = tmp_path / f"{name}.program"
        flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-o", str(program)]
        subprocess.run(
            ["gcc", *flags, str(source), *(["-lstdc++"] if name.endswith("cc") else [])], check=True
        )
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


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Java class and a program that uses it, compiled."""
    directory = tmp_path_factory.mktemp("java")
    shutil.copy(inprocess.JAVA, directory)
    (directory / "Loop.java").write_text(
        """
public class Loop {
    static double[] a = new double[4096];
    static double work() {
        double sum = 0;
        for (int i = 0; i < a.length; i++) { a[i] = a[i] * 1.5 + i; sum += a[i]; }
        return sum;
    }
    public static void main(String[] arguments) throws Exception {
        double sum = 0;
        for (int i = 0; i < 20000; i++) { a[0] = 0; sum += work(); if (i % 100 == 0) java.util.Arrays.fill(a, 1); }
        Thread.sleep(300);  // for the compiler's threads
        System.out.println(Livepro.active() + " " + Livepro.reset());
        for (int i = 0; i < 10; i++) {
            Livepro.reset();
            sum += work();
            long after = Livepro.instructions();
            System.out.println(after);
            Livepro.snapshot("iteration " + i);
        }
        System.out.println(Livepro.pause() + " " + Livepro.resume() + " " + (Livepro.simd() >= 0) + " " + (sum > 0));
    }
}
"""
    )
    subprocess.run(
        ["javac", "--release", "17", *map(str, directory.glob("*.java"))], check=True, cwd=directory
    )
    return directory


def test_java_without_livepro(classes: Path) -> None:
    done = subprocess.run(["java", "-cp", classes, "Loop"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["false false", *["-1"] * 10, "false false false true"]


def test_java_under_translate(classes: Path, tmp_path: Path) -> None:
    """Each iteration is counted alone. A compiled loop over 4,096 elements is the same each time;
    around it the reading of the counter may meet the interpreter or compiled code."""
    printed, report = run(
        tmp_path / "report.json", "translate", "java", "-XX:+UseSerialGC", "-cp", classes, "Loop"
    )
    first, *counts, last = printed.splitlines()
    assert (first, last) == ("true true", "true true true true")
    numbers = sorted(map(int, counts))
    assert numbers[0] > 4096
    assert numbers[5] < 2 * numbers[0]  # half of them
    snapshots = report["snapshots"]
    assert [s["label"] for s in snapshots] == [f"iteration {i}" for i in range(10)]  # type: ignore[attr-defined]
