"""The options of `livepro simpoint`, and what is checked before anything is done."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any

from livepro.cli import checks
from livepro.cli.parser import count
from livepro.errors import LiveproError
from livepro.formats import files

if TYPE_CHECKING:
    from livepro.simpoint import Options, Source

DEFAULT_OUTPUT = "results"

REGION_FILES = "looppoint.json", "pcregions.csv", "sniper"
"""How the files of --thread together end."""

_SHARE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?|\.[0-9]+)(?P<percent> ?%)?")
_WEIGHT = re.compile(r"(?P<name>.+):(?P<weight>[0-9]+(\.[0-9]+)?|\.[0-9]+)")


def share(text: str) -> float:
    """A part as people write it: 2%, 0.02. Raises argparse.ArgumentTypeError for what is not above 0
    and at most 1."""
    match = _SHARE.fullmatch(text.strip())
    value = float(match["number"]) / (100 if match["percent"] else 1) if match else 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no part of a whole (write 2% or 0.02)")
    return value


def number(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def add_measuring(out: argparse.ArgumentParser) -> None:
    """Add the options of what is measured of each interval, for the proof."""
    from livepro.cli.options import add_simulator

    measured = out.add_argument_group(
        "what to prove, too",
        "The points are chosen by blocks as ever; the proof then has misses,\n"
        "mispredictions and MICA's numbers of the same run. x86-64; whole runs.",
    )
    add_simulator(measured)
    measured.add_argument(
        "--mica",
        metavar="ANALYSES",
        help="MICA's analyses, as `livepro mica --analyses` names them: ppm, ilp, all ...",
    )


def measuring(args: argparse.Namespace) -> list[Any]:
    """The analyses that these options ask for. Raises LiveproError for what is wrong with them."""
    from livepro.cli.options import simulators

    out = simulators(args)
    if args.mica:
        from livepro.events.needed import compiler

        with compiler():
            from livepro.mica.model import Mica
        out.append(Mica(tuple(args.mica.split(",")), interval_size=args.interval_size))
    return out


def add_choosing(out: argparse.ArgumentParser) -> None:
    """Add the options that say how to choose and what to write."""
    how = out.add_argument_group("how to choose")
    how.add_argument("--k", metavar="K", type=count, help="exactly K phases")
    how.add_argument(
        "--max-k",
        metavar="K",
        type=count,
        help="at most K phases (default: the square root of the number of intervals, at most 30)",
    )
    how.add_argument(
        "--max-error",
        metavar="PART",
        type=share,
        help="as few phases as hold this error, 2%% say, of every metric that at least 1%% of the "
        "instructions count for (up to 30 without --max-k)",
    )
    how.add_argument(
        "--threshold",
        metavar="T",
        type=share,
        default=0.9,
        help="the fewest phases whose BIC score, from 0 to 1, reaches T (default: 0.9)",
    )
    how.add_argument(
        "--all-k", dest="every", action="store_true", help="look at every number of phases, not by bisection"
    )
    how.add_argument(
        "--dim", metavar="D", type=count, default=15, help="dimensions after projection (default: 15)"
    )
    how.add_argument("--inits", metavar="N", type=count, default=5, help="k-means' starts (default: 5)")
    how.add_argument(
        "--iters", metavar="N", type=count, default=100, help="its iterations at most (default: 100)"
    )
    how.add_argument(
        "--seed", metavar="N", type=number, default=1, help="of projection and k-means (default: 1)"
    )
    how.add_argument(
        "--seeds", metavar="N", type=number, default=4, help="other seeds to compare with (default: 4)"
    )
    how.add_argument(
        "--coverage",
        metavar="PART",
        type=share,
        default=1.0,
        help="keep the heaviest phases that make up this part of the run, 0.95 say (default: all); the "
        "weights sum to 1 all the same",
    )
    how.add_argument(
        "--early",
        metavar="PART",
        type=share,
        nargs="?",
        const=0.1,
        default=0.0,
        help="of the PART of each phase nearest to its centroid (default: 10%%) take the earliest interval",
    )
    how.add_argument(
        "--fixed-length",
        action="store_true",
        help="let every interval count alike; otherwise each counts by its instructions",
    )
    how.add_argument(
        "--with",
        dest="beside",
        metavar="FILE[:WEIGHT]",
        action="append",
        default=[],
        help="cluster by this file of the same intervals, too: MICA's, or a table of numbers; WEIGHT is its "
        "part in squared distances, the vectors' being 1 (default: 1; 0: only prove by it)",
    )
    what = out.add_argument_group("what to write")
    what.add_argument(
        "-o",
        "--output",
        metavar="PREFIX",
        default=DEFAULT_OUTPUT,
        help=f"write PREFIX.simpoints and PREFIX.weights (default: {DEFAULT_OUTPUT})",
    )
    what.add_argument("--json", metavar="FILE", help="the study, as JSON")
    what.add_argument("--labels", metavar="FILE", help="the phase of each interval, a line each")
    what.add_argument(
        "--pin-csv", metavar="FILE", help="the points as Pin's regions.csv: instructions of a thread, from 0"
    )
    what.add_argument("-q", "--quiet", action="store_true", help="print nothing")


def chosen(args: argparse.Namespace) -> Options:
    """The options as `livepro.simpoint.study` takes them."""
    from livepro.simpoint import Options

    return Options(
        k=args.k,
        most=args.max_k,
        threshold=args.threshold,
        every=args.every,
        max_error=args.max_error,
        dimensions=args.dim,
        inits=args.inits,
        iterations=args.iters,
        seed=args.seed,
        seeds=args.seeds,
        coverage=args.coverage,
        early=args.early,
        fixed_length=args.fixed_length,
    )


def check_outputs(args: argparse.Namespace, *, proving: bool) -> None:
    """Raise LiveproError for options that contradict each other, and for files that cannot be written."""
    if args.k is not None and args.max_error is not None:
        raise LiveproError("--k and --max-error both say how many phases.", "Leave one of them out.")
    if args.k is not None and args.max_k is not None and args.k > args.max_k:
        raise LiveproError(f"--k {args.k} is more than --max-k {args.max_k}.", "Leave --max-k out.")
    named = {
        "--json": args.json,
        "--labels": args.labels,
        "--pin-csv": args.pin_csv,
        "--save": getattr(args, "save", None),
    }
    given = {option: name for option, name in named.items() if name is not None}
    if not proving:
        given["-o"], given["-o (weights)"] = f"{args.output}.simpoints", f"{args.output}.weights"
    for option, name in given.items():
        files.check_writable(name, option)
    checks.distinct(given)
    save = given.get("--save", ".json")
    if not save.removesuffix(".gz").endswith(".json"):
        raise LiveproError(f"--save {save} is no JSON file by its name.", "End it in .json or .json.gz.")


def check_together(args: argparse.Namespace, together: bool) -> None:
    """Raise LiveproError for options that do not go with --thread together, or only with it."""
    if not together:
        if args.spin:
            raise LiveproError("--spin goes with --thread together only.", "Leave it out.")
        return
    options = {"--count": args.count, "--save": args.save, "--with": args.beside, "--mica": args.mica}
    options |= {"--cachesim": args.cachesim, "--branch-sim": args.branch_sim, "--hierarchy": args.hierarchy}
    options["--predictors"] = args.predictors
    for option, given in options.items():
        if given:
            raise LiveproError(f"{option} does not go with --thread together.", "Leave it out.")
    if args.pin_csv:
        raise LiveproError(
            "--pin-csv is of one thread; with --thread together PREFIX.pcregions.csv is written.",
            "Leave --pin-csv out.",
        )
    if args.spin:
        from livepro.simpoint.spinning import read_patterns

        read_patterns(args.spin)
    for ending in REGION_FILES:
        files.check_writable(f"{args.output}.{ending}", "-o")


def beside(names: list[str]) -> list[Source]:
    """The sources that --with names, each with its weight. Raises LiveproError."""
    from livepro.simpoint import Vectors, read

    out = []
    for text in names:
        match = _WEIGHT.fullmatch(text)
        name, weight = (
            (match["name"], float(match["weight"])) if match and not os.path.exists(text) else (text, 1.0)
        )
        found = read(name)
        if isinstance(found, Vectors):
            raise LiveproError(
                f"--with {name} is a file of block vectors.",
                "Give block vectors as VECTORS, and with --with what is measured of the same intervals.",
            )
        out.append(found._replace(weight=weight))
    return out
