"""`livepro doctor`: its options. What it does needs libraries that its manual page is made without."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.cli.parser import Parser

DESCRIPTION = """\
Say what works on this machine: may processes be traced, which engines can run,
which libraries and SIMD sets there are. The status is 0 if `livepro run` can
work here, else 1, with what to do about it. With `--tests`: which packages are
there that livepro's own tests need; the status is 1 if any is missing.

  livepro doctor
  livepro doctor --tests"""


def parser() -> Parser:
    """The options of `livepro doctor`."""
    parser = Parser("livepro doctor", DESCRIPTION)
    parser.add_argument(
        "--tests", action="store_true", help="look for what livepro's own tests need, instead"
    )
    return parser


def main(argv: Sequence[str]) -> int:
    """Print the findings on standard output; 0 if a run is possible, or nothing is missing, else 1."""
    if parser().parse_args(argv).tests:
        from livepro.doctor.packages import missing

        return 1 if missing() else 0
    from livepro.doctor.examination import examine

    return examine()
