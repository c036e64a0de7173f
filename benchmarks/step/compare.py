"""Steps one command with livepro and with the minimal C loop, in turns, and prints the ratio.

    python benchmarks/step/compare.py [--turns N] [COMMAND ...]     (default: true)

It ends with status 1 when livepro's cost of a step is more than 1.25 times the loop's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
LIMIT = 1.25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=7, help="runs of each (default: 7)")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command or ["true"]
    # Tracer and program take turns anyway; on one processor the scheduler cannot wake one of
    # them up on another, which takes several times as long, in some runs and not in others.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as directory:
        loop = Path(directory, "minimal")
        subprocess.run(["gcc", "-O2", "-Wall", "-o", loop, HERE / "minimal.c"], check=True)
        contenders = {"C loop": [str(loop)], "livepro": [sys.executable, str(HERE / "engine.py")]}
        costs: dict[str, list[float]] = {name: [] for name in contenders}
        print(f"{' '.join(command)}: microseconds a step")
        for _ in range(args.turns):
            for name, tool in contenders.items():
                steps, seconds = measure(tool, Path(directory, "result"), command)
                costs[name].append(seconds / steps * 1e6)
                print(f"  {name:<8} {costs[name][-1]:6.2f}  ({steps} steps)", flush=True)
    middle = {name: median(values) for name, values in costs.items()}
    ratio = middle["livepro"] / middle["C loop"]
    turns = [ours / theirs for ours, theirs in zip(costs["livepro"], costs["C loop"], strict=True)]
    print(f"medians: C loop {middle['C loop']:.2f}, livepro {middle['livepro']:.2f}: {ratio:.2f} times")
    print(f"turn by turn: {min(turns):.2f} to {max(turns):.2f} times, median {median(turns):.2f}")
    return 0 if ratio <= LIMIT else 1


def measure(tool: list[str], result: Path, command: list[str]) -> tuple[int, float]:
    """Steps and seconds of one run, which writes them into the file `result`."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    subprocess.run([*tool, result, *command], stdout=subprocess.DEVNULL, env=environment)
    words = result.read_text().split()
    result.unlink()
    return int(words[0]), float(words[1])


if __name__ == "__main__":
    sys.exit(main())
