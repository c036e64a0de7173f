"""Runs each program natively and under each tool, in turns, and prints what that cost.

    python -m benchmarks.run [--workloads LIST] [--runners LIST] [--repeat N]
                             [--scale small|full] [--json FILE] [--markdown]

Status 1 if a run of livepro did not end as the native one did, with the same output.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Run, measure
from benchmarks.results import OK, judge, summarize
from benchmarks.runners import NATIVE, ROOT, RUNNERS, TRANSLATE, VECTORS, Runner, livepro
from benchmarks.tables import START_LIMITS, print_tables
from benchmarks.workloads import SCALES, WORKLOADS, Workload

START = "start"
"""The name, among workloads, of livepro's own start."""

DEFAULT_RUNNERS = f"{NATIVE},{TRANSLATE},cold,{VECTORS},exp-bbv"


def main() -> int:
    args = parser().parse_args()
    names = [w.name for w in WORKLOADS]
    chosen = pick(args.workloads, [*names, START], "workload")
    runners = pick(args.runners, [r.name for r in RUNNERS], "runner")
    runners = [NATIVE, *(name for name in runners if name != NATIVE)]  # what all the others are compared with
    results: dict[str, Any] = {
        **circumstances(),
        "scale": args.scale,
        "repeat": args.repeat,
        "runners": runners,
        "workloads": {},
        "start": {},
    }
    compileall.compile_dir(ROOT / "livepro", quiet=1)  # as pip does where it installs
    with tempfile.TemporaryDirectory(prefix="livepro-benchmarks-") as name:
        os.environ["LIVEPRO_CACHE_DIR"] = str(Path(name, "kept"))
        for workload in (w for w in WORKLOADS if w.name in chosen):
            directory = Path(name, workload.name)
            directory.mkdir()
            results["workloads"][workload.name] = compare(workload, runners, args, directory)
        if START in chosen:
            results["start"] = start(args, Path(name))
    print_tables(results, WORKLOADS, markdown=args.markdown)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    return 1 if any(failures(results)) else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    out = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="workloads:\n"
        + "".join(f"  {w.name:<14}{w.what}\n" for w in WORKLOADS)
        + f"  {START:<14}livepro's own start\n\nrunners:\n"
        + "".join(f"  {r.name:<14}{r.what}\n" for r in RUNNERS),
    )
    every = ",".join([*(w.name for w in WORKLOADS), START])
    out.add_argument("--workloads", metavar="LIST", default=every, help="comma-separated (default: all)")
    out.add_argument(
        "--runners",
        metavar="LIST",
        default=DEFAULT_RUNNERS,
        help="comma-separated (default: %(default)s); block and step get short programs only",
    )
    out.add_argument("--repeat", metavar="N", type=int, default=3, help="turns (default: 3)")
    out.add_argument(
        "--once", metavar="LIST", default="", help="runners that take part in the first turn only"
    )
    out.add_argument("--scale", choices=SCALES, default="full")
    out.add_argument(
        "--limit",
        metavar="SECONDS",
        type=float,
        default=900,
        help="end a run that takes longer (default: 900)",
    )
    out.add_argument("--json", metavar="FILE", help="write every number here")
    out.add_argument("--markdown", action="store_true", help="print tables for a README")
    return out


def pick(names: str, known: Sequence[str], what: str) -> list[str]:
    """The names of a comma-separated list; ends the program at an unknown one."""
    out = [name for name in names.split(",") if name]
    for name in out:
        if name not in known:
            sys.exit(f"There is no {what} {name!r}; there are {', '.join(known)}.")
    return out


def compare(
    workload: Workload, runners: Sequence[str], args: argparse.Namespace, directory: Path
) -> dict[str, Any]:
    """All runs of one program, the runners taking turns."""
    command = workload.prepare(directory, args.scale)
    taking_part = [r for r in RUNNERS if r.name in runners and (workload.short or not r.stops)]
    taking_part.sort(key=lambda r: runners.index(r.name))
    once = args.once.split(",")
    runs: dict[str, list[Run]] = {r.name: [] for r in taking_part}
    for runner in (r for r in taking_part if r.keeps):
        progress(workload.name, -1, runner.name, one_run(runner, command, directory, args.limit))
    for turn in range(args.repeat):
        for runner in taking_part:
            if turn == 0 or runner.name not in once:
                run = one_run(runner, command, directory, args.limit)
                runs[runner.name].append(run)
                progress(workload.name, turn, runner.name, run)
    counted = any(name in runs for name in (TRANSLATE, VECTORS))
    return {
        "what": workload.what,
        "bound": workload.bound,
        "runners": summarize(runs),
        "instructions": instructions(command, directory, args.limit) if counted else None,
    }


def one_run(runner: Runner, command: Sequence[str], directory: Path, limit: float) -> Run:
    """One run, in a directory of its own for what the tool writes."""
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        return measure([*runner.prefix(Path(scratch)), *command], Path(scratch), limit)


def instructions(command: Sequence[str], directory: Path, limit: float) -> int | None:
    """How many instructions the program executes, from a run that is not timed."""
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        report = Path(scratch, "report.json")
        asked = livepro("--engine", TRANSLATE, "--quiet", "--json", str(report))
        measure([*asked, *command], Path(scratch), limit)
        return int(json.loads(report.read_text())["instructions"]) if report.exists() else None


def start(args: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Wall times of livepro's own start."""
    commands = {
        "python3 -c pass": [sys.executable, "-c", "pass"],
        "livepro --version": [sys.executable, "-m", "livepro", "--version"],
        "livepro run -- true": [*livepro(), "true"],
    }
    assert START_LIMITS.keys() <= commands.keys()
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    measure([*livepro(), "true"], directory, args.limit)  # what is kept of it is there from now on
    for turn in range(args.repeat):
        for name, command in commands.items():
            run = measure(command, directory, args.limit)
            runs[name].append(run)
            progress(START, turn, name, run)
    return {name: row(several) for name, several in runs.items()}


def row(runs: Sequence[Run]) -> dict[str, Any]:
    """One command that is compared with nothing but itself."""
    out: dict[str, Any] = summarize({NATIVE: runs})[NATIVE]
    failed = any(run.status for run in runs)
    return {**out, "verdict": "failed" if failed else judge(runs, runs)}


def progress(workload: str, turn: int, runner: str, run: Run) -> None:
    """One line per run on standard error: a full benchmark takes a while."""
    status = "" if run.status == 0 else f"  status {run.status}"
    line = f"{workload:<13} turn {turn + 1} {runner:<20} cpu {run.cpu:8.3f}  wall {run.wall:8.3f}{status}"
    print(line, file=sys.stderr, flush=True)


def failures(results: dict[str, Any]) -> list[str]:
    """Workloads that did not run under livepro as they run natively. exp-bbv may fail: it
    does not know AVX-512."""
    return [
        f"{workload} {runner}"
        for workload, of in results["workloads"].items()
        for runner, one in of["runners"].items()
        if runner != "exp-bbv" and one["verdict"] != OK
    ] + [name for name, one in results["start"].items() if one["verdict"] != OK]


def circumstances() -> dict[str, Any]:
    """When and where: date, commit, machine, and what else it was doing."""
    with open("/proc/cpuinfo") as stream:
        models = {line.split(":")[1].strip() for line in stream if line.startswith("model name")}
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "commit": commit.stdout.strip(),
        "machine": ", ".join(sorted(models)) or platform.machine(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    sys.exit(main())
