"""`livepro diff`: what differs between two reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from livepro.cli.loading import load_numpy
from livepro.cli.parser import Parser, count

DESCRIPTION = """\
Compare two JSON reports: instructions by process, thread, function, instruction type and
SIMD set; what appeared, vanished, grew and shrank, the greatest change first. Processes,
threads and functions are found again by their names."""

EPILOG = """\
examples:
  livepro run --json before.json -- ./prog
  livepro run --json after.json -- ./prog.new
  livepro diff before.json after.json
  livepro diff --json before.json after.json | jq '.changes.function[:5]'

exit status: 0 whether they differ or not (`livepro gate` has limits), 2 when a file
cannot be read."""


def parser() -> Parser:
    """The options of `livepro diff`."""
    out = Parser("livepro diff", DESCRIPTION, EPILOG)
    out.usage = "livepro diff [options] BEFORE.json AFTER.json"
    out.add_argument("before", metavar="BEFORE.json", help="what `livepro run --json` wrote")
    out.add_argument("after", metavar="AFTER.json", help="the same of another run")
    out.add_argument("--json", action="store_true", help="everything, as JSON on standard output")
    out.add_argument(
        "--top", metavar="N", type=count, default=15, help="rows of each table at most (default: 15)"
    )
    return out


def main(argv: Sequence[str]) -> int:
    """Print the comparison; 0."""
    args = parser().parse_args(argv)
    load_numpy()
    from livepro.comparing.changes import changes, to_document
    from livepro.formats import json_report
    from livepro.ui.changes import print_changes

    before, after = (json_report.read(name) for name in (args.before, args.after))
    found = changes(before, after)
    if args.json:
        json.dump(to_document(found, before, after), sys.stdout, indent=1)
        print()
    else:
        print_changes(found, sys.stdout, args.top)
    return 0
