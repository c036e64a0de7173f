"""The ways to run a program that are compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Runner:
    """`prefix(directory)` goes before the program's own command line; files that the tool
    writes go into `directory`. `stops` marks the engines that stop a program at each block or
    instruction: they get short programs only. `keeps` marks those that find, in every
    run that is timed, what an earlier one has kept."""

    name: str
    what: str
    prefix: Callable[[Path], list[str]]
    stops: bool = False
    keeps: bool = False


def environment() -> dict[str, str]:
    """The environment of every run, the native ones too: this tree's livepro comes first."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Python may write bytecode files in the first of several runs: none of them should.
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
    }


def livepro(*options: str) -> list[str]:
    """livepro's command line up to the program's own."""
    return [sys.executable, "-m", "livepro", "run", *options, "--"]


def _engine(name: str) -> Callable[[Path], list[str]]:
    return lambda directory: livepro("--engine", name, "--quiet")


def _cold(directory: Path) -> list[str]:
    return livepro("--engine", "translate", "--no-cache", "--quiet")


def _vectors(directory: Path) -> list[str]:
    out = f"{directory}/bb.%p"
    return livepro("--engine", "translate", "--quiet", "--interval-size", "100M", "--bb-out-file", out)


def _exp_bbv(directory: Path) -> list[str]:
    return [
        "valgrind",
        "--quiet",
        "--tool=exp-bbv",
        "--interval-size=100000000",
        f"--bb-out-file={directory}/bb.%p",
        f"--pc-out-file={directory}/pc.%p",
        f"--log-file={directory}/log.%p",
    ]


NATIVE = "native"
TRANSLATE = "translate"
VECTORS = "vectors"

RUNNERS = (
    Runner(NATIVE, "the program alone", lambda directory: []),
    Runner(TRANSLATE, "livepro run --engine translate --quiet", _engine("translate"), keeps=True),
    Runner("cold", "the same with --no-cache: everything is translated anew", _cold),
    Runner(VECTORS, "translate with --interval-size 100M", _vectors, keeps=True),
    Runner("block", "livepro run --engine block --quiet", _engine("block"), stops=True),
    Runner("step", "livepro run --engine step --quiet", _engine("step"), stops=True),
    Runner("exp-bbv", "valgrind --tool=exp-bbv --interval-size=100000000", _exp_bbv),
)
