"""Java programs under livepro, many times in a row, under each collector: on demand.

python -m tests.jvm [--runs N] [--collectors LIST] [--programs LIST] [--java LIST]

Every run must give what the same command gives alone: output, status, files. Prints a line per
program, collector and Java; the exit status is 1 if any run differed.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.jvm import jdk

KERNELS = ("axpy", "dot", "matmul", "convolve", "search")
PROGRAMS: dict[str, tuple[str, ...]] = {
    "hello": ("Hello",),
    "kernels": ("Workload", "200", *KERNELS),
    "vector": ("Workload", "200", *(f"{kernel}.vector" for kernel in KERNELS)),
    "hard": (
        *("Together", "Deoptimise", "100000", "Faults", "10000", "Safepoints", "10", "ManyThreads", "1000"),
        *("Unloading", "40", "Natives", "100", "Collected", "300000"),
    ),
    "http": ("HttpLoad", "400"),
    "javac": (),
}
"""What is run, by name; `javac` compiles a hundred files."""

ONLY_FULL = ("vector", "javac")
"""Programs that need modules which the Java of PyPI does not have."""


def sources(into: Path, count: int = 100) -> list[str]:
    """So many Java files to compile."""
    into.mkdir()
    for n in range(count):
        body = "\n".join(
            f"  static <T extends Comparable<T>> T most{i}(java.util.List<? extends T> all) {{\n"
            f"    return all.stream().filter(x -> x.hashCode() != {i * n}).max(T::compareTo).get();\n"
            "  }"
            for i in range(8)
        )
        other = (
            f"  int next() {{ return new C{(n + 1) % count}().id() + {n}; }}\n  int id() {{ return {n}; }}"
        )
        (into / f"C{n}.java").write_text(f"class C{n} {{\n{body}\n{other}\n}}\n")
    return [str(path) for path in sorted(into.iterdir())]


def command(name: str, version: str, collector: str, classes: Path, place: Path) -> list[str]:
    """The command for a program."""
    flag = f"-XX:+Use{collector}GC"
    if name == "javac":
        return ["javac", f"-J{flag}", "-d", str(place / "out"), *map(str, sorted((place / "in").iterdir()))]
    options = [flag, *(jdk.VECTOR_MODULE if name == "vector" else ())]
    return jdk.command(version, classes, *PROGRAMS[name], options=options)


def outcome(words: Sequence[str], place: Path, timeout: float) -> tuple[int, bytes, str]:
    """Status, standard output, and a digest of the files that a command leaves in `place`/out."""
    out = place / "out"
    out.mkdir(exist_ok=True)
    for path in out.iterdir():
        path.unlink()
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place, timeout=timeout
    )
    digest = hashlib.sha256()
    for path in sorted(out.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return done.returncode, done.stdout, digest.hexdigest()


def main(argv: Sequence[str]) -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser("python -m tests.jvm", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="runs in a row of each (default: 20)")
    parser.add_argument("--collectors", default=",".join(jdk.COLLECTORS), metavar="LIST")
    parser.add_argument("--programs", default=",".join(PROGRAMS), metavar="LIST")
    parser.add_argument("--java", default=",".join(jdk.homes()), metavar="LIST")
    parser.add_argument("--timeout", type=float, default=jdk.TIMEOUT, help="seconds for one run")
    args = parser.parse_args(argv)
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        classes = jdk.compile_all(place / "classes")
        sources(place / "in")
        for version in args.java.split(","):
            for name in args.programs.split(","):
                if name in ONLY_FULL and version != min(jdk.homes()):
                    continue
                for collector in args.collectors.split(","):
                    words = command(name, version, collector, classes, place)
                    alone = outcome(words, place, args.timeout)
                    began = time.monotonic()
                    good = 0
                    for _ in range(args.runs):
                        livepro = [sys.executable, "-m", "livepro", "run", "--quiet", "--", *words]
                        try:
                            good += outcome(livepro, place, args.timeout) == alone
                        except subprocess.TimeoutExpired:
                            print(f"  {name}: no end after {args.timeout} s", flush=True)
                    failed += good != args.runs or alone[0] != 0
                    each = (time.monotonic() - began) / args.runs
                    print(
                        f"Java {version} {collector:10} {name:8} {good} of {args.runs}, {each:.1f} s each",
                        flush=True,
                    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
