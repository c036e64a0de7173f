"""`livepro analyses`: those that `livepro run --analysis` takes."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.cli.parser import Parser

DESCRIPTION = """\
List the analyses of the event stream (memory accesses and branches): those that
livepro has, and those of installed packages (entry points of the group
"livepro.analyses")."""

EPILOG = """\
examples:
  livepro analyses
  livepro run --analysis pages -- ls
  livepro run --analysis mine.py:Strides:depth=3 -- ./prog"""


def main(argv: Sequence[str]) -> int:
    """Print a line for each."""
    parser = Parser("livepro analyses", DESCRIPTION, EPILOG)
    parser.usage = "livepro analyses"
    parser.parse_args(argv)
    from livepro.events.finding import available

    found = list(available())
    width = max(len(analysis.name) for analysis in found)
    for analysis in found:
        print(f"{analysis.name:<{width}}  {analysis.help}  ({analysis.where})")
    return 0
