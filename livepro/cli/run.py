"""`livepro run`: the options, their checks, one call of the API, the outputs."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from livepro import analyses
from livepro.cli import checks
from livepro.cli.parser import Parser, count, names
from livepro.engines import NAMES

if TYPE_CHECKING:
    from livepro.cli.outputs import Plan
    from livepro.model import RunResult
    from livepro.ui.live.app import LiveView

DESCRIPTION = """\
Run COMMAND and count every instruction that each of its processes and threads
executes. The command's input, output, signals and exit status pass through;
livepro's own exit status is the command's. A summary appears on standard error
when it ends."""

EPILOG = """\
examples:
  livepro run -- ls -l
  livepro run --live -- ./prog arg
  livepro run --json counts.json --quiet -- ./prog arg
  livepro run -o results --interval-size 1M -- ./prog
  livepro run --bb-out-file 'bb.%q{USER}.%p.gz' --pc-out-file pc.%p -- ./prog
  livepro run --tier c2 --simd-csv c2.csv -- java -jar app.jar
  livepro run --itypes-spec groups.txt --analyses itypes -- ./prog

In the names of basic block vector files %p is the process id, %q{VAR} the
environment variable VAR and %% a percent sign. Files whose names end in .gz are
compressed. Numbers may be written 100000000, 100_000_000, 1e8 or 100M.

exit status: the command's, or 128 + n when signal n ended it; 127 when the
command is not found, 126 when it cannot be executed, 2 for any other error that
livepro reports, 70 for a bug in livepro."""

UNWRITTEN = 2
"""Exit status where a file that was asked for could not be written after the run."""


def parser() -> Parser:
    """The options of `livepro run`."""
    out = Parser("livepro run", DESCRIPTION, EPILOG)
    out.usage = "livepro run [options] [--] COMMAND [ARGS...]"
    how = out.add_argument_group("how to run")
    how.add_argument(
        "--engine", choices=NAMES, default="auto", help="what watches the program (default: auto)"
    )
    how.add_argument(
        "--no-aslr",
        dest="aslr",
        action="store_false",
        help="no address space randomisation, so that runs can be repeated exactly",
    )
    how.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="translate everything anew and keep nothing (see `livepro cache`)",
    )
    how.add_argument(
        "--children",
        choices=("follow", "ignore"),
        default="follow",
        help="count processes that the command starts, too, or let them run free (default: follow)",
    )
    how.add_argument(
        "--live",
        action="store_true",
        help="watch the counts while it runs, on a screen of their own: ? there tells the keys; what "
        "the program writes to the terminal is kept and repeated when you leave",
    )
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
        help="count instruction types by the groups of this file, in MICA's grammar: gid, sgid, TYPE, name",
    )
    what.add_argument(
        "--jit-only",
        action="store_true",
        help="count only code that a Java virtual machine's compilers made",
    )
    what.add_argument(
        "--tier",
        metavar="LIST",
        type=names,
        help="count only code compiled in these tiers, comma-separated: c1 (1 to 3), c2 (4), 1, 2, 3, 4",
    )
    what.add_argument("--stats", action="store_true", help="add the engine's own figures to the summary")
    files = out.add_argument_group("files to write")
    files.add_argument("--json", metavar="FILE", help="everything, as JSON")
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
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def main(argv: Sequence[str]) -> int:
    """Check everything, run the command, report; return the command's status, as a shell would."""
    args = parser().parse_args(argv)
    command = checks.command(args.command)
    chosen = tuple(analyses.get(name).name for name in args.analyses or analyses.names())
    # What follows loads NumPy and the decoders: not before the command line is known to be right.
    from livepro.analyses.origins import TIERS, compiled, only, tier_wanted
    from livepro.cli import outputs

    checks.tiers(args.tier, TIERS)
    plan = outputs.plan(args, chosen, os.environ)
    result = execute(args, command, plan)
    if args.tier:
        result = only(result, tier_wanted(args.tier), f"code compiled in tier {', '.join(args.tier)}")
    elif args.jit_only:
        result = only(result, compiled, "code that C1 and C2 compiled")
    warnings, errors = outputs.write(plan, result, os.environ)
    if args.instr_count_only and not args.quiet:
        print(outputs.totals_text(plan, result), file=sys.stderr)
    if not args.quiet:
        from livepro.ui.summary import print_summary

        print_summary(
            replace(result, warnings=(*result.warnings, *warnings)),
            sys.stderr,
            sections=chosen,
            stats=args.stats,
            spec=plan.spec,
        )
    for error in errors:
        print(f"livepro: {error}", file=sys.stderr)
    return UNWRITTEN if errors else result.exit or 0


def execute(args: argparse.Namespace, command: tuple[str, ...], plan: Plan) -> RunResult:
    """The run itself, with a live view or a progress line where there is a terminal."""
    from livepro.api import run
    from livepro.ui.progress import progress_line

    # What a run collects lives to its end, and so does this process: the cycle
    # collector would go through it again and again.
    gc.disable()
    sys.stdout.flush()
    view = live_view() if args.live else None
    line = progress_line(args.quiet)
    with view or nullcontext(), line or nullcontext():
        return run(
            command,
            engine=args.engine,
            aslr=args.aslr,
            cache=args.cache,
            children=args.children,
            interval_size=plan.interval_size,
            bbv_dialect=plan.rule.dialect.value,
            progress=line,
            live=view,
        )


def live_view() -> LiveView:
    """A view on the terminal. Raises LiveproError where there is none."""
    from livepro.ui.live.app import LiveView
    from livepro.ui.live.terminal import Terminal

    return LiveView(Terminal.open(), capture=True)
