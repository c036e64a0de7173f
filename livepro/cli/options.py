"""The options that every way of measuring has: what to report, and which files to write."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from livepro import analyses
from livepro.cli import checks
from livepro.cli.parser import count, names
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.cli.outputs import Plan
    from livepro.ui.live.app import LiveView


class Options(Protocol):
    """A parser, or a group of its options."""

    def add_argument(self, *names: str, **settings: Any) -> Any:
        """See `argparse.ArgumentParser.add_argument`."""


def add_to(out: argparse.ArgumentParser) -> None:
    """Add them to a subcommand's parser; `livepro.cli.outputs` reads what they give."""
    what = out.add_argument_group("what to report")
    what.add_argument("-q", "--quiet", action="store_true", help="no summary and no progress line")
    what.add_argument(
        "--analyses",
        metavar="LIST",
        type=names,
        help="only these parts of the summary and of -o, comma-separated: " + ", ".join(analyses.names()),
    )
    what.add_argument(
        "--itypes-spec",
        metavar="FILE",
        help="count instruction types by the groups of this file, in MICA's grammar: gid, sgid, TYPE, "
        "name (in the report; the live view has its own)",
    )
    what.add_argument(
        "--jit-only",
        action="store_true",
        help="count only code that a Java virtual machine's compilers made (in the report; the live view "
        "shows all)",
    )
    what.add_argument(
        "--tier",
        metavar="LIST",
        type=names,
        help="count only code compiled in these tiers, comma-separated: c1 (1 to 3), c2 (4), 1, 2, 3, 4 "
        "(in the report, too)",
    )
    what.add_argument(
        "--no-demangle",
        dest="demangle",
        action="store_false",
        help="show the functions of C++ and Rust as their symbols are (_ZN3foo3barEv)",
    )
    what.add_argument(
        "--analysis",
        metavar="NAME",
        action="append",
        default=[],
        help="analyse what the program accesses and how it branches, too: a name that `livepro analyses` "
        "lists, FILE.py:CLASS or MODULE:CLASS, with options as in split:line=32; may be given several times",
    )
    what.add_argument(
        "--mica",
        dest="analysis",
        action="append_const",
        const="mica",
        help="MICA's characteristics, as --analysis mica tells them (`livepro mica` writes its files, too)",
    )
    what.add_argument(
        "--stream-memory",
        metavar="BYTES",
        type=count,
        help="let about so much of the event stream wait for analyses, 1M or more (default: 64M); when there "
        "is more, the program waits, and nothing is lost",
    )
    what.add_argument("--stats", action="store_true", help="add the engine's own figures to the summary")
    what.add_argument(
        "--metrics",
        metavar="ADDR",
        default="",
        help="serve the counts as OpenMetrics at [HOST]:PORT meanwhile, as in :9464 (on loopback)",
    )
    add_cachesim(out)
    files = out.add_argument_group("files to write")
    files.add_argument("--json", metavar="FILE", help="everything, as JSON")
    files.add_argument(
        "--html", metavar="FILE", help="a page for the browser, as `livepro report` makes it; with --timeline"
    )
    files.add_argument(
        "--timeline",
        action="store_true",
        help="keep how fast each thread went over time in --json; that takes up to a ninth of a processor",
    )
    files.add_argument(
        "--no-code",
        dest="code",
        action="store_false",
        help="leave the executed blocks and their code out of --json: a smaller file, of which `livepro "
        "report` and `livepro export` can show functions but no instructions",
    )
    files.add_argument("--simd-csv", metavar="FILE", help="the SIMD profile, as CSV")
    files.add_argument(
        "-o", "--output", metavar="DIR", help="all files, by their conventional names, into this directory"
    )
    bbv = out.add_argument_group("basic block vectors, as Valgrind's exp-bbv writes them")
    bbv.add_argument(
        "--interval-size",
        metavar="N",
        type=count,
        help="instructions in an interval (default: 100M); alone, it asks for bb.out.%%p",
    )
    bbv.add_argument("--bb-out-file", metavar="FILE", help="the vectors; thread N > 1 gets the suffix .N")
    bbv.add_argument("--pc-out-file", metavar="FILE", help="address and function of each block")
    bbv.add_argument(
        "--instr-count-only",
        action="store_true",
        help="print exp-bbv's totals of each thread, write no vectors",
    )
    bbv.add_argument(
        "--bbv-dialect",
        choices=("exact", "exp-bbv"),
        default="exact",
        help="exact: intervals of exactly N instructions, the last one short; exp-bbv: cut where "
        "exp-bbv cuts, the last partial interval dropped (default: exact)",
    )


def add_cache_size(out: argparse._ActionsContainer) -> None:
    """Add the option that limits the translate engine's code cache."""
    out.add_argument(
        "--cache-size",
        metavar="BYTES",
        type=count,
        help="let translated code take about so much memory in each process, 1K or more (default: 160M); "
        "when it is full, all is dropped and translated anew, and no count is lost",
    )


_CACHESIM = """\
Cachegrind's model: two first-level caches and a last-level one, branch
predictors; or all levels of a machine's caches and TLBs. docs/cachesim.md
tells more."""


def add_cachesim(out: argparse.ArgumentParser) -> None:
    """Add the options of the cache and branch simulator."""
    simulator = out.add_argument_group(
        "cache and branch simulator",
        _CACHESIM,
    )
    add_simulator(simulator)
    simulator.add_argument(
        "--cachegrind-out-file",
        metavar="FILE",
        help="counts by source line, for cg_annotate, KCachegrind and `livepro annotate` "
        "(default: cachegrind.out.%%p)",
    )


def with_machine(argv: Sequence[str]) -> list[str]:
    """A command line in which ``--cachesim MACHINE``, as people write it, is ``--hierarchy MACHINE``. (To
    argparse the name would be the command, which may follow without ``--``.)"""
    out = list(argv)
    end = out.index("--") if "--" in out else next((n for n, a in enumerate(out) if a[:1] != "-"), 0)
    for n, argument in enumerate(out[:end]):
        option, equals, machine = argument.partition("=")
        if option != "--cachesim":
            continue
        if equals:
            out[n] = f"--hierarchy={machine}"
        elif n + 1 < len(out) and _is_machine(out[n + 1]):
            out[n] = "--hierarchy"
    return out


def _is_machine(name: str) -> bool:
    from livepro.cachesim.hierarchy.machine import HOST, ready

    return name == HOST or name.endswith(".toml") or name in ready()


def add_simulator(simulator: Options) -> None:
    """Add the options that say what is simulated."""
    simulator.add_argument(
        "--cachesim",
        action="store_true",
        help="simulate this machine's caches (`--cachesim MACHINE` is `--hierarchy MACHINE`)",
    )
    for name, what in (("I1", "instruction cache"), ("D1", "data cache"), ("LL", "last-level cache")):
        simulator.add_argument(
            f"--{name}", metavar="SIZE,WAYS,LINE", default="", help=f"the {what}, as in 32768,8,64"
        )
    simulator.add_argument(
        "--hierarchy",
        metavar="MACHINE",
        default="",
        help="simulate all caches and TLBs of a machine instead: zen4, skylake-x, neoverse-n1, apple-m1, "
        "host (this one's caches), or a TOML file",
    )
    simulator.add_argument(
        "--branch-sim", action="store_true", help="predict branches, too, as Cachegrind does"
    )
    simulator.add_argument(
        "--predictors",
        metavar="LIST",
        default="",
        help="predict branches by other predictors, comma-separated: bimodal, gshare, tage, ras (returns)",
    )


def analyses_of(args: argparse.Namespace) -> list[Any]:
    """The analyses of the event stream that a command line asks for. Raises LiveproError for what is
    wrong with those of the simulator."""
    simulator = simulators(args)
    if args.cachegrind_out_file and not checks.counts_lines(args):
        raise LiveproError(
            "--cachegrind-out-file is for the simulator.", "Ask for that, too: --cachesim, or --hierarchy."
        )
    return [*args.analysis, *simulator]


def simulators(args: argparse.Namespace) -> list[Any]:
    """The cache and branch simulator, if a command line asks for it. Raises LiveproError for what is wrong
    with its options."""
    shapes = {name: getattr(args, name) for name in ("I1", "D1", "LL") if getattr(args, name)}
    if args.hierarchy and (args.cachesim or shapes):
        other = "--cachesim" if args.cachesim else f"--{next(iter(shapes))}"
        raise LiveproError(f"--hierarchy and {other} exclude each other.", f"Leave {other} out.")
    if not (args.cachesim or args.branch_sim or args.hierarchy or args.predictors):
        if shapes:
            raise LiveproError(
                f"--{next(iter(shapes))} is for the simulator.", "Ask for that, too: --cachesim."
            )
        return []
    from livepro.events.needed import compiler

    found: list[Any] = []
    with compiler():  # each is imported where it is asked for: that takes time
        if args.hierarchy:
            from livepro.cachesim.hierarchy.model import HierarchySim

            found.append(HierarchySim(args.hierarchy))
        if args.cachesim or args.branch_sim:
            from livepro.cachesim.model import CacheSim

            caches = args.cachesim or bool(shapes)
            found.append(CacheSim(args.I1, args.D1, args.LL, caches=caches, branches=args.branch_sim))
        if args.predictors:
            from livepro.cachesim.predictors.model import Predictors

            found.append(Predictors(args.predictors))
    return found


_REGION = """\
Counting begins when a thread first comes to --start-at and, from there,
--skip instructions later; it ends when one comes to --stop-at, or after
--count. A PLACE is a function, NAME or MODULE!NAME, or MODULE+0xOFFSET; with
:COUNT behind it, the arrival there with that number of all threads together,
from the beginning of the run on: prog+0x1189:1000 is the thousandth, and
prog+0x1189:1000@2 that of a process's second thread. N
is the sum over all threads and processes measured; where several run at
once and it cannot be kept to the instruction, a warning says by how much.
Behind the end the program goes on unmeasured, at its own speed."""


def add_region(out: argparse.ArgumentParser) -> None:
    """Add the options that choose which part of a run counts."""
    region = out.add_argument_group("what counts", _REGION)
    region.add_argument("--start-at", metavar="PLACE", default="", help="count from PLACE on")
    region.add_argument("--stop-at", metavar="PLACE", default="", help="count up to PLACE")
    region.add_argument("--skip", metavar="N", type=count, default=0, help="skip N instructions first")
    region.add_argument("--count", metavar="N", type=count, default=0, help="count N instructions")


def measuring(
    args: argparse.Namespace,
    plan: Plan,
    progress: Callable[[Any], None] | None,
    live: LiveView | None,
) -> dict[str, Any]:
    """What `livepro.run` and `livepro.attach` are told alike, from a command line."""
    return {
        "engine": args.engine,
        "analyses": analyses_of(args),
        "stream_memory": args.stream_memory,
        "interval_size": plan.interval_size,
        "bbv_dialect": plan.rule.dialect.value,
        "start_at": args.start_at,
        "stop_at": args.stop_at,
        "skip": args.skip,
        "count": args.count,
        "progress": progress,
        "live": live,
        "serve": True,
        "metrics": args.metrics,
        "cache_size": args.cache_size,
        "demangle": args.demangle,
        "timeline": args.timeline or bool(plan.html),
    }


def live_view(*, capture: bool) -> LiveView:
    """A live view on the terminal; with `capture` it keeps the program's output meanwhile.
    Raises LiveproError where there is no terminal for it."""
    from livepro.ui.live.app import LiveView
    from livepro.ui.live.terminal import Terminal

    return LiveView(Terminal.open(), capture=capture)
