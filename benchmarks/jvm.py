"""A Java virtual machine under livepro: steady state of the kernels, and the cost of a hello world.

python -m benchmarks.jvm [--turns N] [--repeat N] [--collected N] [--hello N] [--limit SECONDS]

The kernels time each of their turns themselves; of the second half of the turns, warmed up, the middle
one is compared between runs with livepro and without, taken in turns, and so is the fastest, which nothing
else on the machine has disturbed. Then the mean turn of a loop beside a collector at work. Hello world is
compared by CPU time with Valgrind's exp-bbv: a first run, which translates everything (--no-cache),
and one from kept translations.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import measure
from benchmarks.runners import ROOT, livepro

MODULE = ("--add-modules", "jdk.incubator.vector")
KERNELS = ("axpy", "dot", "matmul", "convolve", "search")
VARIANTS: dict[str, tuple[tuple[str, ...], str]] = {
    "scalar": (("-XX:-UseSuperWord",), ""),
    "vectorised": ((), ""),
    "Vector API": (MODULE, ".vector"),
}
"""How each kernel is run: options of the virtual machine, what is put behind the kernel's name."""

COLLECTORS = {
    "G1": ("-Xmx64m", "-Xmn4m"),
    "Parallel": ("-Xmx64m", "-Xmn4m"),
    "Z": ("-Xmx300m",),
}
"""Collectors of OpenJDK, and the memory they are given: little, so that they have much to do."""

BOUND = 1.6


def steady(command: Sequence[str], place: Path, limit: float) -> dict[str, tuple[int, int]]:
    """Nanoseconds of the fastest and of the middle turn by kernel. Raises SystemExit when a run fails."""
    run = measure(command, place, limit)
    if run.late:
        sys.exit(f"{' '.join(command)} did not end within {limit:g} s (--limit)")
    if run.status:
        sys.exit(f"{' '.join(command)} failed: {(place / 'errors').read_text()}")
    rows = [line.split() for line in (place / "output").read_text().splitlines()]
    return {row[0].partition(".")[0]: (int(row[2]), int(row[3])) for row in rows if row[1:2] == ["ns"]}


def kernels(classes: Path, place: Path, turns: int, repeat: int, limit: float) -> None:
    """The table of the kernels."""
    print("| kernel | variant | native, us | livepro, us | middle turns | fastest turns |")
    print("|---|---|---|---|---|---|")
    middle, fastest = [], []
    for variant, (options, suffix) in VARIANTS.items():
        names = [kernel + suffix for kernel in KERNELS]
        java = ["java", *options, "-cp", str(classes), "Workload", "-t", str(turns), *names]
        native: dict[str, list[tuple[int, int]]] = {kernel: [] for kernel in KERNELS}
        ours: dict[str, list[tuple[int, int]]] = {kernel: [] for kernel in KERNELS}
        for _ in range(repeat):
            for found, command in ((native, java), (ours, [*livepro("--quiet"), *java])):
                for kernel, took in steady(command, place, limit).items():
                    found[kernel].append(took)
        for kernel in KERNELS:
            alone, counted = (statistics.median(took for _, took in each[kernel]) for each in (native, ours))
            least, least_counted = (min(took for took, _ in each[kernel]) for each in (native, ours))
            middle.append(counted / alone)
            fastest.append(least_counted / least)
            times = f"{alone / 1e3:.1f} | {counted / 1e3:.1f}"
            print(f"| {kernel} | {variant} | {times} | {middle[-1]:.2f} | {fastest[-1]:.2f} |", flush=True)
    means = [math.exp(statistics.fmean(map(math.log, ratios))) for ratios in (middle, fastest)]
    print("\ngeometric means {:.2f} and {:.2f}, meant to be at most".format(*means), BOUND, end="\n\n")


def collected(classes: Path, place: Path, turns: int, limit: float) -> None:
    """The table of a loop beside a thread whose garbage is collected many times a second."""
    print("| collector | native, us | livepro, us | mean turns |\n|---|---|---|---|")
    for name, memory in COLLECTORS.items():
        java = ["java", f"-XX:+Use{name}GC", *memory, "-cp", str(classes), "Collected", "-t", str(turns)]
        alone, counted = (
            steady(command, place, limit)["loop"][1] for command in (java, [*livepro("--quiet"), *java])
        )
        print(f"| {name} | {alone / 1e3:.1f} | {counted / 1e3:.1f} | {counted / alone:.2f} |", flush=True)
    print()


def hello(classes: Path, place: Path, repeat: int, limit: float) -> None:
    """The table of the hello world."""
    java = ["java", "-cp", str(classes), "Hello"]
    ways = {
        "native": java,
        "livepro --no-cache": [*livepro("--quiet", "--no-cache"), *java],
        "livepro": [*livepro("--quiet"), *java],
        "exp-bbv": ["valgrind", "--quiet", "--tool=exp-bbv", f"--bb-out-file={place}/bb.%p", *java],
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, command in ways.items():
            run = measure(command, place, limit)
            if run.status == 0 and (place / "output").read_text() == "hello\n":
                took[name].append(run.cpu)
    print("| hello world | CPU time, s |\n|---|---|")
    for name, times in took.items():
        print(f"| {name} | {statistics.median(times):.2f} |" if times else f"| {name} | failed |")


def main(argv: Sequence[str]) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser("python -m benchmarks.jvm", description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=30_000, help="turns of each kernel (default: 30000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, in turns (default: 3)")
    parser.add_argument(
        "--collected",
        type=int,
        default=600_000,
        help="turns of a loop beside a collector at work (default: 600000)",
    )
    parser.add_argument("--hello", type=int, default=3, help="runs of the hello world (default: 3)")
    parser.add_argument("--limit", type=float, default=600, help="seconds that a run may take (default: 600)")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        classes = place / "classes"
        names = ("Collected", "Hello", "Kernels", "VectorKernels", "Workload")
        sources = [str(ROOT / "fixtures" / "java" / f"{name}.java") for name in names]
        subprocess.run(
            ["javac", "-nowarn", "-d", classes, *MODULE, *sources], check=True, capture_output=True
        )
        if args.turns:
            kernels(classes, place, args.turns, args.repeat, args.limit)
        if args.collected:
            collected(classes, place, args.collected, args.limit)
        if args.hello:
            hello(classes, place, args.hello, args.limit)


if __name__ == "__main__":
    main(sys.argv[1:])
