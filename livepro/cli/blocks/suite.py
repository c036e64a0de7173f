"""`livepro blocks suite`: a data set of the blocks of many benchmarks."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livepro.cli.blocks import options
from livepro.cli.parser import Parser, names
from livepro.errors import LiveproError
from livepro.formats.files import prepare_directory
from livepro.ui.text import duration, plural

if TYPE_CHECKING:
    from livepro.blocks.rows import BlockRow
    from livepro.blocks.suite.manifest import Manifest

DESCRIPTION = """\
Build and run every benchmark of MANIFEST (a TOML file, or the name of a ready suite) in
every variant, and collect the blocks of all into a data set, the directory DIR. A
benchmark that fails is reported, and the others go on; a run that was interrupted goes on
where it was."""

EPILOG = """\
ready suites: kernels (needs a C compiler only), polybench (PolyBench/C 4.2, the
directory in POLYBENCH), rodinia (OpenMP, the directory in RODINIA), speccpu2017 (an
installed tree in SPEC, after `runcpu --action=setup`).

examples:
  livepro blocks suite kernels -o dataset
  livepro blocks suite kernels -o dataset --isa x86_64,aarch64
  POLYBENCH=~/polybench livepro blocks suite polybench -o dataset --jobs 4
  livepro blocks suite mine.toml -o dataset --scheduler tcp://10.0.0.1:8786

Programs of another instruction set are executed, and their blocks counted, by QEMU's user-mode
emulator (Debian's qemu-user). With --weights lines they are only built: each of their blocks has
the executions of its first source line in the run on this machine, and the data set says so.
exit status: 1 when a benchmark failed."""


def parser() -> Parser:
    """The options of `livepro blocks suite`."""
    out = Parser("livepro blocks suite", DESCRIPTION, EPILOG)
    out.usage = "livepro blocks suite MANIFEST -o DIR [options]"
    out.add_argument("manifest", metavar="MANIFEST")
    out.add_argument("-o", "--output", metavar="DIR", required=True, help="the data set's directory")
    out.add_argument(
        "--method", choices=("exact", "sampled"), default="exact", help="how to count (default: exact)"
    )
    out.add_argument(
        "--isa",
        type=names,
        default=(platform.machine(),),
        metavar="NAMES",
        help="instruction sets to build for, x86_64 and aarch64 (default: the machine's)",
    )
    out.add_argument(
        "--weights",
        choices=("run", "lines"),
        help="what weighs blocks of another instruction set than the machine's: a run of theirs, or the "
        "source lines of the machine's own (default: what the manifest says, or run)",
    )
    add_jobs(out)
    return out


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Where the work is done."""
    parser.add_argument(
        "--jobs",
        type=options.positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="benchmarks at a time, on a local Dask cluster (default: one a processor; 1: without Dask)",
    )
    parser.add_argument("--scheduler", default="", metavar="ADDRESS", help="a Dask scheduler to use instead")
    parser.add_argument("-q", "--quiet", action="store_true", help="say only what failed")


def main(argv: Sequence[str]) -> int:
    """Make the data set; 1 when a benchmark failed."""
    args = parser().parse_args(argv)
    from livepro.blocks.files import parquet
    from livepro.blocks.suite.manifest import load

    manifest = load(args.manifest, os.environ)
    parquet.check()
    prepare_directory(args.output, "-o")
    began = time.monotonic()
    weights = {isa: args.weights or manifest.weights.get(isa, "run") for isa in args.isa}
    rows, failures = make(manifest, Path(args.output), args.method, weights, args)
    distinct = len({(row.isa, row.code) for row in rows})
    if not args.quiet:
        print(
            f"{args.output}: {plural(len(rows), 'block')}, {distinct:,} of them distinct, of "
            f"{plural(len({(r.isa, r.benchmark) for r in rows}), 'program')}, in "
            f"{duration(time.monotonic() - began)}"
        )
    if failures:
        print(
            f"livepro: {plural(failures, 'program')} failed. Once that is mended, the same command does "
            "these alone: what was done is not done again.",
            file=sys.stderr,
        )
    return 1 if failures else 0


def make(
    manifest: Manifest, into: Path, method: str, weights: Mapping[str, str], args: argparse.Namespace
) -> tuple[list[BlockRow], int]:
    """The data set's rows, and how many benchmarks failed; `weights` says for each instruction set what
    weighs its blocks. Raises LiveproError."""
    from livepro import isa as registry
    from livepro.blocks.suite.cluster import perform_all
    from livepro.blocks.suite.dataset import collect, tasks

    for isa, way in weights.items():
        if isa not in registry.MACHINES:
            raise LiveproError(
                f"livepro does not know '{isa}'.", f"Known are {', '.join(registry.MACHINES)}."
            )
        if way == "lines" and platform.machine() not in weights:
            raise LiveproError(
                f"The weights of {isa} come from this machine's run, which is not asked for.",
                f"Give `--isa {platform.machine()},{isa}`.",
            )
    every = [
        task for isa, way in weights.items() for task in tasks(manifest, into.resolve(), method, isa, way)
    ]
    states = perform_all(every, args.jobs, args.scheduler, progress(args.quiet))
    rows = collect(into, every, states, manifest, method)
    return rows, sum(bool(state["failure"]) for state in states)


def progress(quiet: bool) -> Callable[[dict[str, Any], int, int], None]:
    """Tells of every benchmark that is done, on standard error."""

    def tell(state: dict[str, Any], number: int, total: int) -> None:
        name = f"{state['name']} ({state['isa']})"
        if state["failure"]:
            print(f"livepro: {name} failed: {state['failure']}", file=sys.stderr, flush=True)
        elif not quiet:
            print(f"livepro: {number} of {total}: {name}", file=sys.stderr, flush=True)

    return tell
