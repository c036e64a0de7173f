"""`livepro run`: the options, their checks, one call of the API, the outputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from livepro.cli.parser import Parser, count, names
from livepro.errors import LiveproError

DESCRIPTION = """\
Run COMMAND and count every instruction that each of its processes and threads
executes. The command's input, output, signals and exit status pass through;
livepro's own exit status is the command's. A summary appears on standard error
when it ends."""

EPILOG = """\
examples:
  livepro run -- ls -l
  livepro run --json counts.json --quiet -- ./prog arg
  livepro run -o results --interval-size 1M -- ./prog
  livepro run --bb-out-file 'bb.%q{USER}.%p.gz' --pc-out-file pc.%p -- ./prog
  livepro run --itypes-spec groups.txt --analyses itypes -- ./prog

In the names of basic block vector files %p is the process id, %q{VAR} the
environment variable VAR and %% a percent sign; they are compressed when the name
ends in .gz. Numbers may be written 100000000, 100_000_000, 1e8 or 100M.

exit status: the command's, or 128 + n when signal n ended it; 127 when the
command is not found, 126 when it cannot be executed, 2 for any other error that
livepro reports, 70 for a bug in livepro."""

DEFAULT_INTERVAL = 100_000_000
"""exp-bbv's default interval size, in instructions."""


def parser() -> Parser:
    """The options of `livepro run`."""
    out = Parser("livepro run", DESCRIPTION, EPILOG)
    out.usage = "livepro run [options] [--] COMMAND [ARGS...]"
    how = out.add_argument_group("how to run")
    how.add_argument(
        "--engine", choices=("auto", "step"), default="auto", help="what watches the program (default: auto)"
    )
    how.add_argument(
        "--no-aslr",
        dest="aslr",
        action="store_false",
        help="no address space randomisation, so that runs can be repeated exactly",
    )
    how.add_argument(
        "--children",
        choices=("follow", "ignore"),
        default="follow",
        help="count processes that the command starts, too, or let them run free (default: follow)",
    )
    what = out.add_argument_group("what to report")
    what.add_argument("-q", "--quiet", action="store_true", help="no summary and no progress line")
    what.add_argument(
        "--analyses",
        metavar="LIST",
        type=names,
        help="only these parts of the summary and of -o, comma-separated: {analyses}",
    )
    what.add_argument(
        "--itypes-spec",
        metavar="FILE",
        help="count instruction types by the groups of this file, in MICA's grammar: gid, sgid, TYPE, name",
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
        "--instr-count-only", action="store_true", help="the totals at the end of each file, no vectors"
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
