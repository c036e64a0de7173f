"""What the event stream costs: python -m benchmarks.events [--scale small|full] [--columns LIST] [NAME ...].

Programs natively, recorded with a consumer that drops everything (`record`), with an analysis of a user's
(`split`, which counts accesses that cross a cache line), under livepro's simulator of caches, and under
Cachegrind, one after the other, each with what a run before has kept and compiled. Wall seconds; livepro's
start is in them. A tool
that is not installed, and a run whose output or status is not the native one's, has no figure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import measure
from benchmarks.runners import livepro
from benchmarks.workloads import SCALES, WORKLOADS
from livepro.events import Analysis

CHOSEN = ("gzip", "xz", "c", "threads", "python-loop")
_LIMIT = 1200.0


class Drop(Analysis):
    """Nothing: what recording alone costs"""

    def consumer(self, name: str, isa: Any) -> Any:
        """See `livepro.events.analysis.Analysis`."""
        return _Dropping(name)


class Blocks(Drop):
    """Nothing, of blocks alone: what recording without addresses costs"""

    addresses = False


class _Dropping:
    def __init__(self, name: str) -> None:
        self.name = name

    def see(self, thread: Any, words: npt.NDArray[np.int64], tables: Any) -> None:
        """Drop the records."""

    def told(self, image: Any, process: Any) -> None:
        """Nothing."""


def commands() -> dict[str, list[str]]:
    """What goes before a program's own command line, by the name of the column."""
    out = {
        "blocks": livepro("--quiet", "--analysis", f"{Path(__file__).resolve()}:Blocks"),
        "record": livepro("--quiet", "--analysis", f"{Path(__file__).resolve()}:Drop"),
        "split": livepro("--quiet", "--analysis", "split"),
        "cachesim": livepro("--quiet", "--cachesim", "--cachegrind-out-file", os.devnull),
    }
    if shutil.which("valgrind"):
        tool = ["--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={os.devnull}"]
        out["cachegrind"] = ["valgrind", "--quiet", *tool]
    return out


def main() -> None:
    """Print a table: seconds, and how many times the native run's they are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("names", nargs="*", default=CHOSEN, metavar="NAME", help=f"of {', '.join(CHOSEN)}")
    tools = commands()
    parser.add_argument("--columns", default=",".join(tools), metavar="LIST", help=f"of {', '.join(tools)}")
    args = parser.parse_args()
    chosen = args.columns.split(",")
    unknown = [name for name in chosen if name not in tools]
    if unknown:
        parser.error(f"there is no column {unknown[0]!r}, there are {', '.join(tools)}")
    tools = {name: tools[name] for name in chosen}
    print(f"{'program':<14}{'native':>9}" + "".join(f"{name:>19}" for name in tools), flush=True)
    with tempfile.TemporaryDirectory(prefix="livepro-benchmarks-") as name:
        os.environ["LIVEPRO_CACHE_DIR"] = str(Path(name, "kept"))
        for workload in (w for w in WORKLOADS if w.name in args.names):
            directory = Path(name, workload.name)
            directory.mkdir()
            program = workload.prepare(directory, args.scale)
            runs = [measure(program, directory, _LIMIT) for _ in range(3)]
            native = min(runs, key=lambda run: run.wall)
            row = f"{workload.name:<14}{native.wall:>9.2f}"
            for tool, prefix in tools.items():
                for _ in range(1 if tool == "cachegrind" else 2):
                    run = measure([*prefix, *program], directory, _LIMIT)
                right = (run.status, run.output) == (native.status, native.output)
                row += f"{run.wall:>11.2f} {run.wall / native.wall:>6.1f}x" if right else f"{'-':>19}"
            print(row, flush=True)


if __name__ == "__main__":
    sys.exit(main())
