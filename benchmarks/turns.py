"""What translated code costs while nothing else disturbs: the fastest of many short turns.

python -m benchmarks.turns [--turns N] [--repeat N] [--programs LIST]

The programs time each of their turns, of about a millisecond, themselves. What else runs on
the machine (on a virtual one that is other people's work, too) makes turns slower, never faster: the
fastest of thousands is one that was left alone. Start-up and translation are not in it; `benchmarks.run`
has whole programs. Each program runs natively, under the translate engine, and with basic
block vectors as well, in turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import measure
from benchmarks.runners import NATIVE, RUNNERS, TRANSLATE, VECTORS
from benchmarks.workloads import HERE, compiled, python

AVX512 = ("-O3", "-march=native", "-mprefer-vector-width=512")
PROGRAMS: dict[str, Callable[[Path, int], list[str]]] = {
    "c": lambda place, turns: [compiled(place, "turns.c", "-O2"), str(turns)],
    "c-avx512": lambda place, turns: [compiled(place, "turns.c", *AVX512), str(turns)],
    "python-loop": lambda place, turns: [python(), str(HERE / "loop.py"), str(turns), "turns"],
}
"""By name: the command line of a program that takes so many turns. (`c-avx512` uses what the
processor has.)"""

WAYS = (NATIVE, TRANSLATE, VECTORS)


def fastest(command: Sequence[str], place: Path, limit: float) -> dict[str, int]:
    """Nanoseconds of the fastest turn by part of the work. Raises SystemExit when a run fails."""
    run = measure(command, place, limit)
    if run.late or run.status:
        sys.exit(f"{' '.join(command)} failed: {(place / 'errors').read_text()}")
    rows = [line.split() for line in (place / "output").read_text().splitlines()]
    return {row[0]: int(row[1]) for row in rows if row[0] != "#"}


def table(name: str, place: Path, turns: int, repeat: int, limit: float) -> None:
    """Measure one program, and print a row for each part of its work, and one for all of it."""
    command = PROGRAMS[name](place, turns)
    prefixes = {runner.name: runner.prefix for runner in RUNNERS}
    best: dict[str, dict[str, int]] = {way: {} for way in WAYS}
    for _ in range(repeat):
        for way in WAYS:
            for part, took in fastest([*prefixes[way](place), *command], place, limit).items():
                best[way][part] = min(took, best[way].get(part, took))
    parts = list(best[NATIVE])
    for part in [*parts, ""] if len(parts) > 1 else [""]:
        took = {way: sum(best[way][each] for each in ([part] if part else parts)) for way in WAYS}
        native, plain, vectors = (took[way] for way in WAYS)
        print(
            f"| {name}{', ' + part if part else ''} | {native:,} | {plain / native:.2f} "
            f"| {vectors / native:.2f} | {100 * (vectors / plain - 1):+.0f} % |",
            flush=True,
        )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser("python -m benchmarks.turns", description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=1000, help="of each run (default: 1000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind (default: 3)")
    parser.add_argument("--programs", default=",".join(PROGRAMS), metavar="LIST")
    parser.add_argument(
        "--limit", type=float, default=300, metavar="SECONDS", help="for one run (default: 300)"
    )
    args = parser.parse_args()
    print("| fastest turns | native, ns | translate | vectors | vectors add |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        for name in args.programs.split(","):
            table(name, Path(directory), args.turns, args.repeat, args.limit)


if __name__ == "__main__":
    main()
