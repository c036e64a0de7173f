"""The programs that are measured, each at two scales: `full` takes seconds natively, `small` far less."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.workloads import words

HERE = Path(__file__).resolve().parent
SCALES = ("small", "full")


@dataclass(frozen=True)
class Workload:
    """`prepare(directory, scale)` puts into `directory` what the program needs and returns
    its command line. `bound` is the ratio of CPU time over native that the translate engine
    is to stay within (None: not stated). `short` programs are quick enough to be stepped.
    """

    name: str
    what: str
    prepare: Callable[[Path, str], list[str]]
    bound: float | None = None
    short: bool = False


def python() -> str:
    """The system's own Python where there is one: no wrapper script, no virtual environment."""
    return shutil.which("python3", path="/usr/bin:/bin") or sys.executable


def compiled(directory: Path, source: str, *options: str) -> str:
    """Compile one of the C sources here. Raises CalledProcessError if that fails."""
    program = directory / source.removesuffix(".c")
    subprocess.run(["gcc", "-Wall", "-Wextra", *options, "-o", program, HERE / source], check=True)
    return str(program)


def text(directory: Path, scale: str, *, full: int, small: int) -> str:
    """A file of words, of as many bytes as the scale says."""
    path = directory / "text"
    words.write(path, full if scale == "full" else small)
    return str(path)


def _ls(directory: Path, scale: str) -> list[str]:
    return ["ls", "-l", "/usr/bin"]


def _start(directory: Path, scale: str) -> list[str]:
    return [python(), "-c", "pass"]


def _true(directory: Path, scale: str) -> list[str]:
    return ["true"]


def _gzip(times: int) -> Callable[[Path, str], list[str]]:
    def prepare(directory: Path, scale: str) -> list[str]:
        return ["gzip", "-6nc", *[text(directory, scale, full=17 << 20, small=1 << 20)] * times]

    return prepare


def _xz(directory: Path, scale: str) -> list[str]:
    return ["xz", "-6c", text(directory, scale, full=6 << 20, small=200_000)]


def _loop(directory: Path, scale: str) -> list[str]:
    return [python(), str(HERE / "loop.py"), "2000" if scale == "full" else "50"]


def _c(*options: str) -> Callable[[Path, str], list[str]]:
    def prepare(directory: Path, scale: str) -> list[str]:
        return [compiled(directory, "work.c", *options), "180" if scale == "full" else "4"]

    return prepare


def _threads(directory: Path, scale: str) -> list[str]:
    return [compiled(directory, "threads.c", "-O2", "-pthread"), "4000" if scale == "full" else "100"]


WORKLOADS = (
    Workload("true", "a program that does nothing", _true, short=True),
    Workload("ls", "ls -l /usr/bin", _ls, short=True),
    Workload("python-start", "python3 -c pass", _start, short=True),
    Workload("python-loop", "a loop in CPython: arithmetic, dicts, lists, calls", _loop, bound=2.4),
    Workload("gzip", "gzip -6 of 17 MiB of text", _gzip(1), bound=1.45),
    Workload("gzip-4", "the same text, four times", _gzip(4), bound=1.45),
    Workload("xz", "xz -6 of 6 MiB of text", _xz),
    Workload("c", "C at -O2: matrix product, sorting, strings", _c("-O2"), bound=1.6),
    Workload(
        "c-avx512",
        "the same at -O3 -march=native, 512-bit vectors",
        _c("-O3", "-march=native", "-mprefer-vector-width=512"),
        bound=1.5,
    ),
    Workload("threads", "the same in four threads that share a queue", _threads, bound=1.5),
)
