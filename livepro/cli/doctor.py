"""`livepro doctor`: its options. What it does needs libraries that its manual page is made without."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.cli.parser import Parser

DESCRIPTION = """\
Say what works on this machine: may processes be traced, which engines can run,
which libraries and SIMD sets there are. The status is 0 if `livepro run` can
work here, else 1, with what to do about it. With `--tests`: which packages are
there that livepro's own tests need; the status is 1 if any is missing. With
`--prepare`: compile what translates new code, which else happens in the
background of the first run that needs it.

  livepro doctor
  livepro doctor --tests
  livepro doctor --prepare"""


def parser() -> Parser:
    """The options of `livepro doctor`."""
    parser = Parser("livepro doctor", DESCRIPTION)
    parser.add_argument(
        "--tests", action="store_true", help="look for what livepro's own tests need, instead"
    )
    parser.add_argument("--prepare", action="store_true", help="compile what translates new code, instead")
    return parser


def main(argv: Sequence[str]) -> int:
    """Print the findings on standard output; 0 if a run is possible, or nothing is missing, else 1."""
    args = parser().parse_args(argv)
    if args.prepare:
        from livepro.doctor.preparing import prepare

        return prepare()
    if args.tests:
        from livepro.doctor.packages import missing

        return 1 if missing() else 0
    from livepro.doctor.examination import examine

    return examine()
