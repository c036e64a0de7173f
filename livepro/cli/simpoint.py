"""`livepro simpoint`: simulation points out of interval vectors, from files or from a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from livepro.cli import checks, simpoint_options
from livepro.cli.loading import load_numpy
from livepro.cli.parser import Parser, count
from livepro.errors import LiveproError

DESCRIPTION = """\
Choose the intervals of a run that are worth simulating, and say how well they
stand for it. VECTORS is a basic block vector file of livepro, exp-bbv, QEMU or
SimPoint, what `livepro simpoint run --save` saved, or an interval file of MICA.

`livepro simpoint run [options] -- PROGRAM` runs the program itself; see
`livepro simpoint run --help`."""

EPILOG = """\
examples:
  livepro simpoint run --interval-size 10M -- ./prog arg
  livepro simpoint bb.out.4711 --pc pc.out.4711
  livepro simpoint bb.out.gz --all-k --max-k 50
  livepro simpoint saved.json.gz --max-error 2%
  livepro simpoint bb.out --with memfootprint_phases_int_pin.out:0.5
  livepro simpoint bb.out --check results.simpoints results.weights

Writes results.simpoints and results.weights, as SimPoint names and fills them:
`interval phase` and `weight phase`, lines in the same order, intervals from 0."""

RUN_DESCRIPTION = """\
Run PROGRAM, cut what its busiest thread executes into intervals, choose those
that are worth simulating, and prove how well they stand for the run. The
program's input, output, signals and exit status pass through."""

RUN_EPILOG = """\
examples:
  livepro simpoint run --interval-size 10M -- gzip -k file
  livepro simpoint run --max-error 2% -o gzip -- gzip -k file
  livepro simpoint run --save java.json.gz --thread all -- java -jar app.jar
  livepro simpoint run --interval-size 400M --thread together -- ./openmp

exit status: the program's, or 128 + n when signal n ended it; 2 when livepro
could not choose or write what was asked for."""


def parser() -> Parser:
    """The options of `livepro simpoint VECTORS`."""
    out = Parser("livepro simpoint", DESCRIPTION, EPILOG)
    out.usage = "livepro simpoint [options] VECTORS\n       livepro simpoint run [options] -- PROGRAM"
    out.add_argument("vectors", metavar="VECTORS", help="the file of interval vectors")
    out.add_argument("--pc", metavar="FILE", help="the pc file of the same run: names the hottest functions")
    out.add_argument(
        "--check",
        nargs=2,
        metavar=("POINTS", "WEIGHTS"),
        help="choose nothing: prove the choice in these two files, SimPoint's or anybody's",
    )
    simpoint_options.add_choosing(out)
    return out


def parsers() -> dict[str, tuple[Parser, str]]:
    """The parser of each command of this command, and what it does."""
    return {"run": (run_parser(), "run a program and choose its simulation points")}


def run_parser() -> Parser:
    """The options of `livepro simpoint run`."""
    from livepro.cli import options
    from livepro.engines import NAMES

    out = Parser("livepro simpoint run", RUN_DESCRIPTION, RUN_EPILOG)
    out.usage = "livepro simpoint run [options] [--] PROGRAM [ARGS...]"
    how = out.add_argument_group("how to run")
    how.add_argument(
        "--interval-size",
        metavar="N",
        type=count,
        default=100_000_000,
        help="instructions in an interval (default: 100M)",
    )
    how.add_argument("--engine", choices=NAMES, default="auto", help="what watches it (default: auto)")
    how.add_argument("--no-aslr", dest="aslr", action="store_false", help="no address space randomisation")
    how.add_argument(
        "--thread",
        metavar="WHICH",
        default="busiest",
        help="busiest (the default), all of its process, or a number, as exp-bbv numbers threads: 1 is the "
        "first; with all, files of thread N > 1 get the suffix .N. Or together: all threads side by side, "
        "cut at the same moments, --interval-size instructions of all of them; regions go from a loop's turn "
        "to another, and are written for gem5, Pin and Sniper (.looppoint.json, .pcregions.csv, .sniper)",
    )
    how.add_argument(
        "--spin",
        metavar="FILE",
        help="with --thread together: more code in which threads wait for each other, and that does not "
        "count: a pattern MODULE!FUNCTION a line. (OpenMP's and the C library's is known.)",
    )
    how.add_argument(
        "--loops",
        metavar="N",
        type=count,
        default=0,
        help="list the N loops in which most was executed, each with the place of its header, which "
        "--start-at takes",
    )
    how.add_argument(
        "--save", metavar="FILE", help="keep the vectors, to choose again without a run (.json, .json.gz)"
    )
    options.add_region(out)
    simpoint_options.add_measuring(out)
    simpoint_options.add_choosing(out)
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def main(argv: Sequence[str]) -> int:
    """Choose from a file, or run a program and choose; return the exit status."""
    if argv and argv[0] == "run":
        return main_run(argv[1:])
    args = parser().parse_args(argv)
    simpoint_options.check_outputs(args, proving=args.check is not None)
    load_numpy()
    from livepro.cli import simpoint_outputs as outputs
    from livepro.simpoint import Vectors, read, with_places

    found = read(args.vectors)
    if args.pc:
        if not isinstance(found, Vectors):
            raise LiveproError(f"{args.vectors} has no blocks that --pc could name.", "Leave --pc out.")
        found = with_places(found, args.pc)
    vectors = found if isinstance(found, Vectors) else None
    sources = ([] if isinstance(found, Vectors) else [found]) + simpoint_options.beside(args.beside)
    if args.check:
        return outputs.check(args, vectors, sources)
    outputs.choose(args, vectors, sources, args.output, sys.stdout)
    return 0


def main_run(argv: Sequence[str]) -> int:
    """`livepro simpoint run`."""
    from livepro.cli.options import with_machine

    args = run_parser().parse_args(with_machine(argv))
    together = args.thread == "together"
    named = together or args.thread in ("busiest", "all")
    if not named and not (args.thread.isdecimal() and int(args.thread)):
        raise LiveproError(
            f"--thread {args.thread}: no such thread.", "Name busiest, all, together or a number from 1."
        )
    command = checks.command(args.command)
    simpoint_options.check_outputs(args, proving=False)
    simpoint_options.check_together(args, together)
    load_numpy()
    from livepro.api import run
    from livepro.cli import simpoint_outputs as outputs
    from livepro.simpoint.together import SNAPSHOTS
    from livepro.ui.progress import progress_line

    outputs.check_installed()
    analyses = simpoint_options.measuring(args)
    sys.stdout.flush()
    line = progress_line(args.quiet)
    with line or nullcontext():
        result = run(
            command,
            engine=args.engine,
            aslr=args.aslr,
            interval_size=0 if together else args.interval_size,
            snapshot_every=-(-args.interval_size // SNAPSHOTS) if together else 0,
            start_at=args.start_at,
            stop_at=args.stop_at,
            skip=args.skip,
            count=args.count,
            analyses=analyses,
            progress=line,
            serve=True,
        )
    try:
        outputs.choose_from_run(args, result)
    except LiveproError as error:
        print(f"livepro: {error}", file=sys.stderr)
        return 2
    for warning in result.warnings:
        print(f"livepro: warning: {warning}", file=sys.stderr)
    if result.exit is None:
        from livepro.cli.run import left_to_itself

        return left_to_itself(result)
    return result.exit
