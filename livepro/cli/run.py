"""`livepro run`: the options, their checks, one call of the API, the outputs."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from livepro import analyses
from livepro.cli import checks, options
from livepro.cli.loading import ended_at_once, load_numpy
from livepro.cli.options import live_view
from livepro.cli.parser import Parser
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
  livepro run --start-at main --count 100M -- ./prog
  livepro run --start-at libz!deflate --stop-at libz!deflateEnd -- ./prog
  livepro run --cachesim --branch-sim -- ./prog
  livepro run --hierarchy zen4 --predictors gshare,tage -- ./prog
  livepro run --analysis pages --analysis mine.py:Strides -- ./prog
  livepro run --itypes-spec groups.txt --analyses itypes -- ./prog

In the names of basic block vector files %p is the process id, %q{VAR} the
environment variable VAR and %% a percent sign. Files whose names end in .gz are
compressed. Numbers may be written 100000000, 100_000_000, 1e8 or 100M.

exit status: the command's, or 128 + n when signal n ended it; 2 when it ended
before what was to be counted (--start-at, --skip) began; 127 when the
command is not found, 126 when it cannot be executed, 2 for any other error that
livepro reports, 70 for a bug in livepro."""


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
    options.add_cache_size(how)
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
    options.add_region(out)
    options.add_to(out)
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def main(argv: Sequence[str]) -> int:
    """Check everything, run the command, report; return the command's status, as a shell would."""
    args = parser().parse_args(options.with_machine(argv))
    command = checks.command(args.command)
    chosen = tuple(analyses.get(name).name for name in args.analyses or analyses.names())
    # What follows loads NumPy and the decoders: not before the command line is known to be right.
    # What is loaded and collected from here on lives to the end, and so does this process: the
    # cycle collector would go through it again and again.
    gc.disable()
    load_numpy()
    with ended_at_once():
        from livepro.cli import outputs
        from livepro.cli.main import complain
        from livepro.session import FAILED

        plan = outputs.plan(args, chosen, os.environ)
    status: int | None
    view = live_view(capture=True) if args.live else None
    with view or nullcontext():
        result = execute(args, command, plan, view)
        status = result.exit
        if status is None and view is not None:
            status = left_to_itself(result)  # what it writes goes through the view's hands
    complete = outputs.report(args, chosen, plan, result)
    if args.quiet:
        for text in result.warnings:
            if text.startswith(FAILED):  # the counts are not what was asked for, and nothing else says so
                complain(text)
    if status is None:
        status = left_to_itself(result)
    return status if complete and outputs.measured(result) else outputs.UNWRITTEN


def left_to_itself(result: RunResult) -> int:
    """The status of a command that was let go (`livepro ctl PID detach`), once it has ended."""
    status = os.waitpid(result.processes[0].pid, 0)[1]
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def execute(
    args: argparse.Namespace, command: tuple[str, ...], plan: Plan, view: LiveView | None
) -> RunResult:
    """The run itself, with a live view or a progress line where there is a terminal."""
    from livepro.api import run
    from livepro.ui.progress import progress_line

    sys.stdout.flush()
    line = progress_line(args.quiet)
    with line or nullcontext(), ended_at_once():
        return run(
            command,
            aslr=args.aslr,
            cache=args.cache,
            children=args.children,
            **options.measuring(args, plan, line, view),
        )
