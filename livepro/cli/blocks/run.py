"""`livepro blocks run`: the blocks of a run, each with how often it was executed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from livepro.cli import checks
from livepro.cli.blocks import options
from livepro.cli.parser import Parser

if TYPE_CHECKING:
    from livepro.model import RunResult

DESCRIPTION = """\
Run COMMAND and count every execution of every basic block, in all its processes and
threads. The command's input, output, signals and exit status pass through; the table
goes to standard error."""

EPILOG = """\
examples:
  livepro blocks run -- gzip -k -c /usr/bin/perl > /dev/null
  livepro blocks run --loops-only --min-share 1% -o blocks.csv -- ./prog
  livepro blocks run --distinct --no-calls --format bhive -o prog.csv -- ./prog
  livepro blocks run --module prog --format llvm-mca -o prog.s -- ./prog

share is a block's part of all executions of blocks; of time, its part of all
instructions executed. exit status: the command's, as of `livepro run`."""


def parser() -> Parser:
    """The options of `livepro blocks run`."""
    out = Parser("livepro blocks run", DESCRIPTION, EPILOG)
    out.usage = "livepro blocks run [options] [--] COMMAND [ARGS...]"
    add_running(out)
    options.add_output(out, counted=True)
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def add_running(parser: argparse.ArgumentParser) -> None:
    """The options that say how to run the command."""
    from livepro.engines import NAMES

    parser.add_argument("--engine", choices=NAMES, default="auto", help="what watches the program")
    parser.add_argument(
        "--children",
        choices=("follow", "ignore"),
        default="follow",
        help="count processes that the command starts, too, or let them run free (default: follow)",
    )


def main(argv: Sequence[str]) -> int:
    """Run, count, write, print; the command's status."""
    args = parser().parse_args(argv)
    command = checks.command(args.command)
    options.check_output(args, stdout=False)
    result = execute(args, command)
    from livepro.blocks.exact import run_rows
    from livepro.cli.blocks.output import report

    what = f"{' '.join(command)}, {result.instructions:,} instructions"
    report(args, run_rows(result), sys.stderr, what)
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return result.exit or 0


def execute(args: argparse.Namespace, command: tuple[str, ...]) -> RunResult:
    """The run itself, with a progress line where there is a terminal."""
    from livepro.api import run
    from livepro.ui.progress import progress_line

    sys.stdout.flush()
    line = progress_line(args.quiet)
    with line or nullcontext():
        return run(command, engine=args.engine, children=args.children, progress=line)
