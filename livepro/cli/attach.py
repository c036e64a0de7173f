"""`livepro attach`: the options, their checks, one call of the API, the outputs."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from livepro import analyses
from livepro.cli import options
from livepro.cli.loading import ended_at_once, load_numpy
from livepro.cli.parser import Parser, count, duration
from livepro.engines import NAMES
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.cli.outputs import Plan
    from livepro.model import RunResult

WINDOW = 0.2
"""Seconds that a window is long, unless --for says otherwise."""

DESCRIPTION = """\
Take over the running process PID, count every instruction that each of its threads
executes for a while, and let it go as if nothing had been there. It is let go after
--duration, after --instructions, or on Ctrl-C; then a summary appears on standard
error. Whatever happens to livepro, the process goes on."""

EPILOG = """\
examples:
  livepro attach 1234 --duration 10s
  livepro attach --name postgres --children --json counts.json
  livepro attach 1234 --instructions 1G --quiet -o results
  livepro attach 1234 --every 10s --for 200ms --duration 1h
  livepro attach 1234 --engine step --duration 200ms
  livepro attach 1234 --start-at handle_request --stop-at send_reply

Times may be written 10s, 200ms, 2m or 1h; numbers 100000000, 1e8 or 100M.

exit status: 0 when the process was measured, whether it goes on or has ended
meanwhile; 2 for every error that livepro reports (the process is then as it was),
70 for a bug in livepro."""


def parser() -> Parser:
    """The options of `livepro attach`."""
    out = Parser("livepro attach", DESCRIPTION, EPILOG)
    out.usage = "livepro attach [options] PID"
    out.add_argument("pid", metavar="PID", nargs="?", help="the process to measure")
    which = out.add_argument_group("which processes")
    which.add_argument(
        "--name",
        help="the process of this name instead of PID; there must be one only (with --children: one that all "
        "others of this name descend from)",
    )
    which.add_argument(
        "--children",
        action="store_true",
        help="its descendants too, those there are and those it starts meanwhile",
    )
    how = out.add_argument_group("how long, and how")
    how.add_argument("--duration", metavar="TIME", type=duration, help="let go after this time")
    how.add_argument(
        "--instructions",
        metavar="N",
        type=count,
        help="let go once N instructions have been counted (looked at a hundred times a second)",
    )
    how.add_argument(
        "--every",
        metavar="TIME",
        type=duration,
        help="attach for a moment (--for) again and again, this long from one beginning to the next, "
        "until --duration or Ctrl-C; in between the process runs untouched",
    )
    how.add_argument(
        "--for",
        dest="window",
        metavar="TIME",
        type=duration,
        help="how long each moment is, with --every (default: 200ms)",
    )
    how.add_argument(
        "--engine", choices=NAMES, default="auto", help="what watches the process (default: auto)"
    )
    options.add_cache_size(how)
    how.add_argument(
        "--live",
        action=argparse.BooleanOptionalAction,
        help="watch the counts meanwhile, on a screen of their own: ? there tells the keys "
        "(default: on a terminal, without --quiet)",
    )
    options.add_region(out)
    options.add_to(out)
    return out


def main(argv: Sequence[str]) -> int:
    """Check everything, attach, report; return 0 when that worked."""
    from livepro import front

    args = parser().parse_args(options.with_machine(argv))
    if (args.pid is None) == (args.name is None):
        raise LiveproError(
            "There is no process to attach to." if args.pid is None else "Both a pid and --name are given.",
            "Name one, by pid or by --name: `livepro attach 1234`.",
        )
    check_windows(args)
    chosen = tuple(analyses.get(name).name for name in args.analyses or analyses.names())
    status = front.divide()
    if status is not None:
        if status == 128 + signal.SIGKILL:
            print(
                "livepro: The process that did the tracing was killed by SIGKILL: what it traced may have "
                "ended with it.",
                file=sys.stderr,
            )
        return status
    # What follows loads NumPy and the decoders: not before the command line is known to be right.
    load_numpy()
    with ended_at_once():
        from livepro.cli import outputs

        plan = outputs.plan(args, chosen, os.environ)
        result = execute(args, plan)
    complete = outputs.report(args, chosen, plan, result)
    return 0 if complete and outputs.measured(result) else outputs.UNWRITTEN


def process(args: argparse.Namespace) -> int:
    """The pid that the arguments mean. Raises LiveproError."""
    from livepro.api import find_process

    if args.name is not None:
        return find_process(args.name, children=args.children)
    try:
        return int(args.pid)
    except ValueError:
        raise LiveproError(
            f"'{args.pid}' is no process id.",
            f"For a process of that name: `livepro attach --name {args.pid}`.",
        ) from None


def execute(args: argparse.Namespace, plan: Plan) -> RunResult:
    """The measurement itself, with a progress line where there is a terminal."""
    from livepro.api import attach
    from livepro.ui.progress import progress_line

    pid = process(args)
    if args.every is not None:
        return sample_windows(args, pid)
    gc.disable()
    view = options.live_view(capture=False) if wants_live(args) else None
    line = progress_line(args.quiet)
    with view or nullcontext(), line or nullcontext():
        return attach(
            pid,
            seconds=args.duration,
            instructions=args.instructions,
            children=args.children,
            **options.measuring(args, plan, line, view),
        )


def sample_windows(args: argparse.Namespace, pid: int) -> RunResult:
    """The measurement with --every."""
    from livepro.api import sample
    from livepro.ui.progress import progress_line

    gc.disable()
    line = progress_line(args.quiet)
    with line or nullcontext():
        return sample(
            pid,
            every=args.every,
            window=args.window or WINDOW,
            seconds=args.duration,
            engine=args.engine,
            children=args.children,
            demangle=args.demangle,
            progress=line,
        )


def check_windows(args: argparse.Namespace) -> None:
    """Raise LiveproError for what does not go with --every, or only with it."""
    if args.every is None:
        if args.window is not None:
            raise LiveproError("--for is the length of a window.", "Say how often, too: --every 10s.")
        return
    if (args.window or WINDOW) >= args.every:
        raise LiveproError(
            "--for must be shorter than --every.", "Between two windows the process is to run untouched."
        )
    others = {
        "--live": args.live,
        "--instructions": args.instructions,
        "--start-at": args.start_at,
        "--stop-at": args.stop_at,
        "--skip": args.skip,
        "--count": args.count,
        "--metrics": args.metrics,
        "--interval-size": args.interval_size,
        "--bb-out-file": args.bb_out_file,
        "--pc-out-file": args.pc_out_file,
    }
    given = [option for option, value in others.items() if value]
    if given:
        raise LiveproError(
            f"{given[0]} does not go with --every.", "It is for a measurement without gaps: leave one out."
        )


def wants_live(args: argparse.Namespace) -> bool:
    """Whether there is to be a live view: as asked, else where somebody can see it."""
    if args.live is not None:
        return bool(args.live)
    seen = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return seen and not args.quiet
