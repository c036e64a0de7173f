"""`livepro doctor`: its options. What it does needs libraries that its manual page is made without."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.cli.parser import Parser

DESCRIPTION = """\
Say what works on this machine: may processes be traced, which engines can run,
which libraries and SIMD sets there are. The status is 0 if `livepro run` can
work here, else 1, with what to do about it."""


def parser() -> Parser:
    """The options of `livepro doctor`."""
    return Parser("livepro doctor", DESCRIPTION)


def main(argv: Sequence[str]) -> int:
    """Print the findings on standard output; 0 if a run is possible, else 1."""
    parser().parse_args(argv)
    from livepro.cli.examination import examine

    return examine()
