"""`livepro gate`: fail where a run executes more than it may."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from livepro.cli import checks
from livepro.cli.loading import load_numpy
from livepro.cli.parser import Parser, count, part
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.comparing.changes import Document
    from livepro.comparing.gate import Limits, Verdict

DESCRIPTION = """\
Compare a run with a baseline and fail if it executes more than the limits allow. The run
is a JSON report, or a COMMAND that is run now (without address space randomisation, so that
it can be repeated)."""

EPILOG = """\
examples:
  livepro gate --save-baseline base.json -- ./prog
  livepro gate --baseline base.json -- ./prog
  livepro gate --baseline base.json --soft 0.5% --per function run.json
  livepro gate --baseline base.json --markdown "$GITHUB_STEP_SUMMARY" --junit gate.xml -- ./prog
  livepro gate --hard 50M -- ./prog

exit status: 0 when all limits are kept, 3 on a regression, 2 for an error that livepro
reports; a command that fails ends the gate with its own status."""


def parser() -> Parser:
    """The options of `livepro gate`."""
    out = Parser("livepro gate", DESCRIPTION, EPILOG)
    out.usage = "livepro gate [options] (RUN.json | -- COMMAND [ARGS...])"
    out.add_argument("--baseline", metavar="FILE", help="the JSON report to compare with")
    out.add_argument(
        "--save-baseline",
        metavar="FILE",
        help="keep this run's JSON report as a baseline for later, unless it is a regression",
    )
    limits = out.add_argument_group("limits")
    limits.add_argument(
        "--soft",
        metavar="PERCENT",
        type=part,
        help="let a count grow by so much, as in 1%% (default: 1%%, where there is a baseline)",
    )
    limits.add_argument(
        "--hard", metavar="N", type=count, help="let the whole run execute N instructions, as in 50M"
    )
    limits.add_argument(
        "--per",
        choices=("function", "thread"),
        default="",
        help="apply --soft to each function or thread, too",
    )
    limits.add_argument(
        "--ignore-below",
        metavar="PERCENT",
        type=part,
        default=0.001,
        help="with --per, leave out what is less than this part of the run (default: 0.1%%)",
    )
    files = out.add_argument_group("files to write")
    files.add_argument("--markdown", metavar="FILE", help="a summary for a pull request")
    files.add_argument("--junit", metavar="FILE", help="JUnit XML, a test case for each comparison")
    out.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    out.add_argument("run", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def main(argv: Sequence[str]) -> int:
    """Compare; 0, `livepro.comparing.gate.REGRESSION`, or the status of a command that failed."""
    args = parser().parse_args(argv)
    if args.baseline is None and args.hard is None and args.save_baseline is None:
        raise LiveproError(
            "There is nothing to compare with.", "Give --baseline FILE, --hard N, or --save-baseline FILE."
        )
    if args.soft is not None and args.baseline is None:
        raise LiveproError("--soft needs something to grow from.", "Give --baseline FILE, too.")
    load_numpy()
    from livepro.formats import files, json_report

    outputs = {"--markdown": args.markdown, "--junit": args.junit, "--save-baseline": args.save_baseline}
    for option, name in outputs.items():
        if name is not None:
            files.check_writable(name, option)
    before = None if args.baseline is None else json_report.read(args.baseline)
    after = _run(args)
    if args.run[:1] == ["--"] and after["exit"]:
        print(f"livepro: The command failed (exit {after['exit']}): nothing is compared.", file=sys.stderr)
        return int(after["exit"])
    return _conclude(args, before, after)


def _run(args: argparse.Namespace) -> Document:
    """The report to judge: read, or made by running the command."""
    from livepro.formats import json_report

    if args.run[:1] != ["--"]:
        if len(args.run) != 1:
            raise LiveproError(
                "There is no run to judge." if not args.run else f"'{args.run[1]}' is one file too many.",
                "Name a JSON report, or a command behind `--`.",
            )
        return json_report.read(args.run[0])
    from livepro.analyses.document import to_document
    from livepro.api import run
    from livepro.ui.progress import progress_line

    command = checks.command(args.run)
    line = progress_line(args.quiet)
    if line is None:
        return to_document(run(command, aslr=False))
    with line:
        return to_document(run(command, aslr=False, progress=line))


def _conclude(args: argparse.Namespace, before: Document | None, after: Document) -> int:
    """Judge, say it, write the files."""
    from livepro.comparing import gate, junit, markdown
    from livepro.formats import files, json_report
    from livepro.ui.changes import print_verdicts

    verdicts = gate.judge(before, after, _limits(args))
    failed = gate.regressed(verdicts)
    title = " ".join(after["command"])
    if args.markdown is not None:
        with files.open_text(args.markdown) as stream:
            stream.write(_encodable(markdown.summary(verdicts, title)))
    if args.junit is not None:
        with files.open_text(args.junit) as stream:
            stream.write('<?xml version="1.0" encoding="utf-8"?>\n' + junit.document(verdicts, title))
    if args.save_baseline is not None and not failed:
        json_report.write(args.save_baseline, after)
    if not args.quiet:
        print_verdicts(verdicts, sys.stdout, top=15)
        _say(args, failed, verdicts)
    return gate.REGRESSION if failed else 0


def _limits(args: argparse.Namespace) -> Limits:
    from livepro.comparing.gate import SOFT, Limits

    soft = SOFT if args.soft is None and args.baseline is not None else args.soft
    return Limits(soft, args.hard, args.per, args.ignore_below)


def _say(args: argparse.Namespace, failed: bool, verdicts: list[Verdict]) -> None:
    if failed:
        broken = sum(bool(v.limit) for v in verdicts)
        print(f"\nFAILED: {broken} of {len(verdicts)} broke a limit", end="")
        print(f"; {args.save_baseline} is left as it was" if args.save_baseline else "")
    elif args.save_baseline is not None:
        size = Path(args.save_baseline).stat().st_size if os.path.exists(args.save_baseline) else 0
        print(f"\npassed; {args.save_baseline} written, {size:,} bytes")
    else:
        print("\npassed")


def _encodable(text: str) -> str:
    """`text` as UTF-8 can hold it: bytes of the target's that were none are replaced."""
    return text.encode("utf-8", "replace").decode()
