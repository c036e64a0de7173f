"""Real programs through the command line, compared with what they do alone.

class TestStepPrograms(RealPrograms):
    engine = "step"
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TIMEOUT = 120.0
"""Seconds after which a run counts as hung."""

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/"}

LIGHT: tuple[tuple[str, tuple[str, ...], bytes], ...] = (
    ("false", ("false",), b""),
    ("ls", ("ls", "-l", "data", "none"), b""),  # one of them on standard error
    ("cat", ("cat",), b"from standard input\n"),
    ("gzip", ("gzip", "-nc", "data/text"), b""),
)
HEAVY: tuple[tuple[str, tuple[str, ...], bytes], ...] = (
    ("perl", ("perl", "-e", 'print join(",", sort { $b <=> $a } 1..200), "\\n"; exit 3'), b""),
    ("python", ("python3", "-S", "-c", "import sys; print(sum(range(10**5))); sys.exit(4)"), b""),
    ("sort", ("sh", "-c", "seq 3000 | sort -rn | head -3; exit 5"), b""),
)
_GIT = "rm -rf .git && git init -q . && git add data && git commit -q -m all && git log -p --format=%H"
_WHO = ("NAME=n", "EMAIL=e", "DATE=1000000000 +0000")
HEAVIEST: tuple[tuple[str, tuple[str, ...], bytes], ...] = (
    (
        "git",  # which starts others of its own kind
        ("env", *(f"GIT_{r}_{w}" for r in ("AUTHOR", "COMMITTER") for w in _WHO), "sh", "-c", _GIT),
        b"",
    ),
    (
        "gcc",  # vfork and exec: the compiler, and the assembler
        ("sh", "-c", "gcc -O2 -c -x c -o data/made.o - && md5sum data/made.o"),
        b"int triple(int n) { int s = 0; for (int i = 0; i < 3; i++) s += n; return s; }\n",
    ),
)


@dataclass(frozen=True)
class Run:
    """A run through the command line; `document` is what --json wrote (None: nothing)."""

    status: int
    stdout: bytes
    stderr: bytes
    document: dict[str, Any] | None


def environment(**more: str) -> dict[str, str]:
    """A small environment in which `python -m livepro` finds the package."""
    return {**ENVIRONMENT, "PYTHONPATH": str(REPOSITORY), **more}


def livepro(*arguments: str | Path, cwd: Path, stdin: bytes = b"", quiet: bool = True) -> Run:
    """`livepro run --json FILE ARGUMENTS` in `cwd`. A shell's status: 128 + n for signal n."""
    out = cwd / "run.json"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "livepro", "run", *(["--quiet"] if quiet else []), "--json", str(out)]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment(),
        timeout=TIMEOUT,
    )
    document = json.loads(out.read_text()) if out.exists() else None
    return Run(done.returncode, done.stdout, done.stderr, document)


def prepared(place: Path) -> Path:
    """A directory with known data in it."""
    data = place / "data"
    data.mkdir(parents=True)
    (data / "text").write_text("".join(f"line {n * n}\n" for n in range(100)))
    (data / "other").write_text("other\n")
    for path in (*data.iterdir(), data):
        os.utime(path, (10**9, 10**9))
    return place


class RealPrograms:
    """What every engine's programs must do: exactly what they do alone."""

    engine: ClassVar[str]
    heavy: ClassVar[bool] = False
    heaviest: ClassVar[bool] = False

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        if "program" in metafunc.fixturenames:
            programs = LIGHT + (HEAVY if cls.heavy else ())
            cases = [pytest.param(program, id=program[0]) for program in programs]
            if cls.heaviest:
                cases += [pytest.param(p, id=p[0], marks=pytest.mark.long) for p in HEAVIEST]
            metafunc.parametrize("program", cases)

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        """A directory with known data in it."""
        return prepared(tmp_path)

    def test_as_alone(self, program: tuple[str, tuple[str, ...], bytes], place: Path) -> None:
        _, command, stdin = program
        alone = subprocess.run(command, input=stdin, capture_output=True, cwd=place, env=environment())
        run = livepro("--engine", self.engine, "--", *command, cwd=place, stdin=stdin)
        assert (run.status, run.stdout, run.stderr) == (alone.returncode, alone.stdout, alone.stderr)
        document = run.document
        assert document is not None
        assert document["exit"] == alone.returncode
        assert document["command"] == list(command)
        assert document["warnings"] == []
        for process in document["processes"]:
            for field in ("instructions", "rep_instructions", "rep_iterations"):
                assert process[field] == sum(thread[field] for thread in process["threads"])
            assert process["instructions"] > 0
        assert document["processes"][0]["instructions"] > 50_000  # no dynamic program starts with less

    def test_every_process_of_a_pipeline(self, place: Path) -> None:
        run = livepro("--engine", self.engine, "--", "sh", "-c", "ls data | wc -l", cwd=place)
        assert (run.status, run.stdout) == (0, b"2\n")
        assert run.document is not None
        processes = run.document["processes"]
        shell = processes[0]["pid"]
        images = {(p["pid"] == shell, p["image"], Path(p["command"][0]).name, p["exit"]) for p in processes}
        assert images == {
            (True, 0, "sh", 0),
            (False, 0, "sh", None),  # two of these, before their exec
            (False, 1, "ls", 0),
            (False, 1, "wc", 0),
        }
        assert len(processes) == 5
        assert {p["ppid"] for p in processes if p["pid"] != shell} == {shell}
