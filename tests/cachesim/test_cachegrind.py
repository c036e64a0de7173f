"""The simulator against Valgrind's Cachegrind: the same numbers, to the unit, for every source line."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fixtures import ROOT
from livepro.formats import cachegrind

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")

CACHE = tempfile.mkdtemp(prefix="livepro-tests-")
"""Compiled kernels, for all tests of a process."""

FLAGS = ("-g", "-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector", "-fcf-protection=none")
SMALL = ("1024,2,64", "4096,4,64", "16384,8,64")
USUAL = ("32768,8,64", "32768,8,64", "1048576,16,64")


def tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed (Debian: {package})")
        pytest.skip(f"{name} is not installed (Debian: {package})")
    return found


def build(name: str, directory: Path, optimisation: str) -> Path:
    out = directory / f"{name}{optimisation}"
    source = ROOT / "cachegrind" / f"{name}.c"
    # No builtin string functions in place of loops: Valgrind counts the iterations of rep as instructions.
    flags = (*FLAGS, optimisation, "-fno-tree-loop-distribute-patterns")
    subprocess.run(["gcc", *flags, "-o", str(out), str(source)], check=True)
    return out


def livepro(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "livepro", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT.parent), "XDG_CACHE_HOME": CACHE},
        capture_output=True,
        text=True,
        timeout=300,
    )


def by_line(profile: cachegrind.Profile) -> dict[tuple[str, int], list[int]]:
    out: dict[tuple[str, int], Counter[int]] = {}
    for (file, _, line), counts in profile.lines.items():
        out.setdefault((Path(file).name, line), Counter()).update(dict(enumerate(counts)))
    return {key: [counts[n] for n in range(len(profile.events))] for key, counts in out.items()}


def read(path: Path) -> cachegrind.Profile:
    with path.open() as stream:
        return cachegrind.read(stream, str(path))


def shapes(caches: tuple[str, str, str]) -> list[str]:
    return [f"--{name}={shape}" for name, shape in zip(("I1", "D1", "LL"), caches, strict=True)]


@pytest.mark.parametrize(
    ("name", "optimisation", "caches"),
    [("walks", "-O1", SMALL), ("walks", "-O2", USUAL), ("unaligned", "-O1", SMALL)],
)
def test_equal_to_cachegrind(name: str, optimisation: str, caches: Any, tmp_path: Path) -> None:
    valgrind = tool("valgrind", "valgrind")
    program = build(name, tmp_path, optimisation)
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    native = subprocess.run([program]).returncode
    referee = [valgrind, "-q", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", *shapes(caches)]
    subprocess.run([*referee, f"--cachegrind-out-file={theirs}", str(program)], capture_output=True)
    options = ("--cachesim", "--branch-sim", *shapes(caches), f"--cachegrind-out-file={mine}")
    done = livepro("run", "--analyses", "totals", *options, "--", program, cwd=tmp_path)
    assert done.returncode == native, done.stderr
    wanted, got = read(theirs), read(mine)
    assert got.events == wanted.events
    assert by_line(got) == by_line(wanted)
    assert got.totals == wanted.totals
    assert got.descriptions == wanted.descriptions
    assert all(
        got.totals[got.events.index(event)] for event in ("D1mr", "DLmr", "Bcm" if name == "walks" else "Bc")
    )


def test_the_file_is_read_by_valgrind_and_by_livepro(tmp_path: Path) -> None:
    annotate = tool("cg_annotate", "valgrind")
    program = build("walks", tmp_path, "-O1")
    done = livepro("run", "-q", "--cachesim", "--", program, cwd=tmp_path)
    assert done.stderr == ""
    (out,) = tmp_path.glob("cachegrind.out.*")
    shown = subprocess.run([annotate, str(out)], capture_output=True, text=True)
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert "walks.c:strided" in shown.stdout
    difference = subprocess.run(
        [tool("cg_diff", "valgrind"), str(out), str(out)], capture_output=True, text=True
    )
    assert difference.returncode == 0
    own = livepro("annotate", "--show", "Ir,D1mr", out, cwd=tmp_path)
    assert own.returncode == 0
    assert "walks.c:strided" in own.stdout
    assert "numbers[i * 97 & 4095] += i;" in own.stdout
    same = livepro("annotate", out, out, cwd=tmp_path)
    assert same.returncode == 0
    assert "strided" not in same.stdout
    assert livepro("annotate", "--sort", "XY", out, cwd=tmp_path).returncode == 2
    (tmp_path / "bad").write_text("events: Ir\nfl=a\nfn=b\n1 x\n")
    bad = livepro("annotate", tmp_path / "bad", cwd=tmp_path)
    assert bad.returncode == 2
    assert "bad, line 4" in bad.stderr


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--D1", "32768,8", "is no cache"),
        ("--D1", "32768,8,8", "16 or more"),
        ("--I1", "32768,8,48", "power of two"),
        ("--LL", "98304,8,64", "192 sets"),
        ("--LL", "1000,8,64", "multiple"),
    ],
)
def test_impossible_caches_are_told_before_the_program_runs(
    option: str, value: str, words: str, tmp_path: Path
) -> None:
    done = livepro("run", "--cachesim", option, value, "--", "touch", tmp_path / "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert option in done.stderr
    assert words in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_file_that_cannot_be_written_is_told_before_the_program_runs(tmp_path: Path) -> None:
    where = "/proc/nothing/out"
    done = livepro(
        "run", "--cachesim", "--cachegrind-out-file", where, "--", "touch", tmp_path / "x", cwd=tmp_path
    )
    assert done.returncode == 2
    assert where in done.stderr
    assert not (tmp_path / "x").exists()
    alone = livepro("run", "--D1", "32768,8,64", "--", "true", cwd=tmp_path)
    assert (alone.returncode, "--cachesim" in alone.stderr) == (2, True)
