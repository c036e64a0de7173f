"""`livepro blocks compare`: what sampling sees of a program, and what it misses."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from livepro.cli import checks
from livepro.cli.blocks import options, run, sample
from livepro.cli.parser import Parser
from livepro.ui.text import percent, plural

if TYPE_CHECKING:
    from livepro.blocks.comparison import Comparison, Pair
    from livepro.ui.tables import Table

DESCRIPTION = """\
Run COMMAND twice, once counted exactly and once sampled, and compare the two
answers: the order of blocks and functions, the ten hottest, and what no sample met."""

EPILOG = """\
examples:
  livepro blocks compare -- gzip -k -c /usr/bin/perl > /dev/null
  livepro blocks compare --frequency 4000 -- python3 script.py

The exact figures are parts of all instructions executed, the sampled ones parts of all
samples, that is, of time: they differ where instructions take longer than others.
exit status: that of the exact run."""


def parser() -> Parser:
    """The options of `livepro blocks compare`."""
    out = Parser("livepro blocks compare", DESCRIPTION, EPILOG)
    out.usage = "livepro blocks compare [options] [--] COMMAND [ARGS...]"
    run.add_running(out)
    sample.add_frequency(out)
    out.add_argument("--top", type=options.positive, default=10, metavar="N", help="rows (default: 10)")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress line")
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def main(argv: Sequence[str]) -> int:
    """Run twice, compare, print; the exact run's status."""
    args = parser().parse_args(argv)
    command = checks.command(args.command)
    from livepro.blocks.comparison import compare
    from livepro.blocks.exact import run_rows
    from livepro.blocks.sampling.sampled import sampled_rows

    samples = sample.sampled_command(command, args.frequency, None, args.quiet)
    result = run.execute(args, command)
    found = sampled_rows(samples)
    show(compare(run_rows(result), found.rows), args.top)
    console = sys.stderr
    print(
        f"\n{result.instructions:,} instructions counted; {plural(samples.total, 'sample')} "
        f"({samples.source}), {found.elsewhere.total():,} of them in no known block",
        file=console,
    )
    for warning in (*result.warnings, *samples.warnings()):
        print(f"warning: {warning}", file=console)
    return result.exit or 0


def show(found: Comparison, top: int) -> None:
    """The comparison, on standard error."""
    from livepro.ui.console import ascii_only, open_console

    console = open_console(sys.stderr)
    plain = ascii_only(console)
    for title, pairs in (("Functions", found.functions), ("Blocks", found.blocks)):
        console.print(f"{title}, the hottest by exact counts")
        for line in table(pairs[:top]).lines(console.width, plain):
            console.print(line, soft_wrap=True)
        console.print("")
    for sentence in sentences(found):
        console.print(sentence, soft_wrap=True)


def table(pairs: Sequence[Pair]) -> Table:
    """Shares side by side."""
    from livepro.ui.tables import Column, Table

    out = Table(
        [
            Column("exact"),
            Column("sampled"),
            Column("", right=False, flexible=True, weight=3, style="cyan"),
            Column("module", right=False, flexible=True),
        ]
    )
    for pair in pairs:
        name = pair.name or "(no symbol)"
        out.add(part(pair.exact), part(pair.sampled), name, PurePath(pair.module).name)
    return out


def sentences(found: Comparison) -> list[str]:
    """What the figures say."""
    return [
        f"rank correlation: {number(found.correlation)} over {plural(len(found.blocks), 'block')}, "
        f"{number(found.function_correlation)} over {plural(len(found.functions), 'function')}",
        f"the ten hottest blocks have {part(found.exact_hottest)} of the instructions and "
        f"{part(found.sampled_hottest)} of the samples; {found.common} of them are among the ten with most",
        f"no sample met {plural(found.missed_blocks, 'executed block')}, with {part(found.missed)} of the "
        "instructions",
    ]


def number(value: float) -> str:
    """A correlation coefficient."""
    return "unknown" if math.isnan(value) else f"{value:.3f}"


def part(share: float) -> str:
    """A share in percent."""
    return percent(round(share * 10**9), 10**9)
