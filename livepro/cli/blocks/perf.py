"""`livepro blocks perf`: the blocks of samples that perf has taken."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.cli.blocks import options, sample
from livepro.cli.parser import Parser

DESCRIPTION = """\
Read the samples of a file that `perf record` wrote, by `perf script`, and look up the
basic block of each. The programs and libraries must still be where they were."""

EPILOG = """\
examples:
  perf record -e cycles:u ./prog && livepro blocks perf
  livepro blocks perf perf.data --loops-only --format bhive -o prog.csv"""


def parser() -> Parser:
    """The options of `livepro blocks perf`."""
    out = Parser("livepro blocks perf", DESCRIPTION, EPILOG)
    out.usage = "livepro blocks perf [FILE] [options]"
    out.add_argument("file", metavar="FILE", nargs="?", default="perf.data")
    options.add_output(out, counted=True)
    return out


def main(argv: Sequence[str]) -> int:
    """Read, write, print; 0 if all went well."""
    args = parser().parse_args(argv)
    options.check_output(args, stdout=True)
    from livepro.blocks.sampling.perf_data import perf_samples
    from livepro.blocks.sampling.sampled import sampled_rows

    samples = perf_samples(args.file)
    sample.report(args, args.file, samples, sampled_rows(samples))
    return 0
