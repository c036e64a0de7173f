"""`livepro blocks sample`: the blocks that a program is met in, many times a second."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from livepro.cli import checks
from livepro.cli.blocks import options
from livepro.cli.parser import Parser, duration
from livepro.errors import LiveproError
from livepro.ui.text import plural

if TYPE_CHECKING:
    from livepro.blocks.sampling.collect import Samples
    from livepro.blocks.sampling.sampled import Sampled

DESCRIPTION = """\
Run COMMAND, or watch a running process, and take samples of where its threads, and
those of all that it starts, are: the program runs at its own speed. Every sample is of
the basic block that was being executed. Cycles where the processor lets livepro count
them; in virtual machines, mostly, the kernel's software clock."""

EPILOG = """\
examples:
  livepro blocks sample -- gzip -k -c /usr/bin/perl > /dev/null
  livepro blocks sample --pid 1234 --duration 10s -o blocks.csv
  livepro blocks sample --frequency 4000 --loops-only --distinct -- ./prog

exit status: the command's; 0 for a process that was running before."""


def parser() -> Parser:
    """The options of `livepro blocks sample`."""
    out = Parser("livepro blocks sample", DESCRIPTION, EPILOG)
    out.usage = "livepro blocks sample [options] [--] COMMAND [ARGS...]  |  --pid PID"
    out.add_argument("--pid", type=options.positive, help="sample this process, which runs already")
    add_frequency(out)
    out.add_argument(
        "--duration", type=duration, metavar="TIME", help="sample for so long (10s, 2m), then let it go on"
    )
    options.add_output(out, counted=True)
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def add_frequency(parser: argparse.ArgumentParser) -> None:
    """How often to sample."""
    parser.add_argument(
        "--frequency",
        type=options.positive,
        default=997,
        metavar="N",
        help="samples a second of processor time (default: 997)",
    )


def main(argv: Sequence[str]) -> int:
    """Sample, write, print; the command's status."""
    args = parser().parse_args(argv)
    if (args.pid is None) == (not args.command):
        raise LiveproError(
            "Sampling takes either a command or the --pid of a process.",
            "`livepro blocks sample -- COMMAND`, or `livepro blocks sample --pid PID`.",
        )
    options.check_output(args, stdout=False)
    from livepro.blocks.sampling.collect import sample_process
    from livepro.blocks.sampling.sampled import sampled_rows

    if args.pid is not None:
        samples = sample_process(args.pid, args.frequency, args.duration, progress(args.quiet))
        what = f"process {args.pid}"
    else:
        command = checks.command(args.command)
        samples = sampled_command(command, args.frequency, args.duration, args.quiet)
        what = " ".join(command)
    report(args, what, samples, sampled_rows(samples))
    return samples.exit or 0


def sampled_command(command: tuple[str, ...], frequency: int, seconds: float | None, quiet: bool) -> Samples:
    """Samples of a run of `command` with this process's environment."""
    from livepro.blocks.sampling.collect import sample_command

    sys.stdout.flush()
    return sample_command(command, dict(os.environb), frequency, seconds, progress(quiet))


def report(args: argparse.Namespace, what: str, samples: Samples, found: Sampled) -> None:
    """The rows and what is to be known of the samples."""
    from livepro.cli.blocks import output

    heading = f"{what}, {plural(samples.total, 'sample')} ({samples.source})"
    output.report(args, found.rows, sys.stderr, heading)
    for module, times in found.elsewhere.most_common(3):
        print(
            f"note: {plural(times, 'sample')} in {module or 'unknown memory'} met no block that is known.",
            file=sys.stderr,
        )
    for warning in samples.warnings():
        print(f"warning: {warning}", file=sys.stderr)


def progress(quiet: bool) -> Callable[[Samples], None] | None:
    """Shows samples taken on the terminal, from time to time; None where that is not wanted."""
    if quiet or not sys.stderr.isatty():
        return None
    drawn = [time.monotonic()]

    def draw(samples: Samples) -> None:
        if time.monotonic() - drawn[0] > 1:
            drawn[0] = time.monotonic()
            print(f"\r\x1b[Klivepro: {samples.total:,} samples\r", end="", file=sys.stderr, flush=True)

    return draw
