"""`livepro annotate`: a cache profile as functions, and as source with counts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from livepro.cli.parser import Parser, names
from livepro.errors import LiveproError

DESCRIPTION = """\
Show a file that `livepro run --cachesim` or Cachegrind wrote: the functions
that count most, then their source lines. With a second file, what has changed
from that to the first."""

EPILOG = """\
examples:
  livepro annotate cachegrind.out.1234
  livepro annotate --sort D1mr,Ir --threshold 1 cachegrind.out.1234
  livepro annotate new.out old.out"""

CONTEXT = 2
"""Source lines shown before and behind one with counts."""


def parser() -> Parser:
    """The options of `livepro annotate`."""
    out = Parser("livepro annotate", DESCRIPTION, EPILOG)
    out.usage = "livepro annotate [options] FILE [OLDER]"
    out.add_argument(
        "--sort", metavar="EVENTS", type=names, help="sort by these events (default: the file's)"
    )
    out.add_argument("--show", metavar="EVENTS", type=names, help="show these only")
    out.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=float,
        default=0.5,
        help="only functions and lines with so much of the first sorted event (default: 0.5)",
    )
    out.add_argument("--no-source", action="store_true", help="functions only")
    out.add_argument("file", metavar="FILE")
    out.add_argument("older", metavar="OLDER", nargs="?")
    return out


def main(argv: Sequence[str]) -> int:
    """Print the tables."""
    args = parser().parse_args(argv)
    from livepro.formats import cachegrind, files
    from livepro.ui.console import ascii_only, open_console
    from livepro.ui.tables import Column, Table

    def read(name: str) -> cachegrind.Profile:
        with files.open_text(name, "r") as stream:
            return cachegrind.read(stream, name)

    profile = read(args.file)
    if args.older:
        profile = profile.minus(read(args.older))
    for event in (*(args.sort or ()), *(args.show or ())):
        if event not in profile.events:
            raise LiveproError(f"There is no event '{event}'.", f"The file has {', '.join(profile.events)}.")
    shown = [profile.events.index(event) for event in args.show or profile.events]
    order = [profile.events.index(event) for event in args.sort or profile.events]
    totals = profile.totals
    least = abs(totals[order[0]]) * args.threshold / 100
    console = open_console(sys.stdout, None)
    plain = ascii_only(console)

    def print_table(title: str, rows: list[tuple[Sequence[int] | None, str]]) -> None:
        columns = [Column(profile.events[n]) for n in shown]
        table = Table([*columns, Column(title, right=False)])
        for counts, text in rows:
            cells = [_cell(counts[n], totals[n]) if counts is not None else "" for n in shown]
            table.add(*cells, text)
        for line in table.lines(console.width if console.is_terminal else 10_000, plain):
            console.print(line, soft_wrap=True)
        console.print("")

    for line in (*profile.descriptions, f"Command: {profile.command}", ""):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    print_table("program", [(totals, "total")])
    functions = [item for item in profile.functions().items() if abs(item[1][order[0]]) >= least]
    functions.sort(key=lambda item: tuple(-abs(item[1][n]) for n in order))
    print_table("function", [(counts, f"{file}:{name}") for (file, name), counts in functions])
    if not args.no_source:
        for file in dict.fromkeys(file for (file, _), _ in functions):
            rows = _source(profile, file, order[0], least)
            if rows:
                print_table(file, rows)
    return 0


def _cell(count: int, total: int) -> str:
    return f"{count:,} ({100 * count / total:.1f}%)" if total else f"{count:,}"


def _source(profile: object, file: str, first: int, least: float) -> list[tuple[Sequence[int] | None, str]]:
    """The lines of a source file that have counts, with some around them; none if it cannot be read."""
    from livepro.formats.cachegrind import Profile

    assert isinstance(profile, Profile)
    try:
        text = Path(file).read_text(errors="replace").splitlines()
    except OSError:
        return []
    counts: dict[int, tuple[int, ...]] = {}
    for (where, _, line), row in profile.lines.items():
        if where == file and 0 < line <= len(text):
            known = counts.get(line, (0,) * len(row))
            counts[line] = tuple(map(sum, zip(known, row, strict=True)))
    wanted = {
        near
        for line, row in counts.items()
        if abs(row[first]) >= least
        for near in range(line - CONTEXT, line + CONTEXT + 1)
    }
    out: list[tuple[Sequence[int] | None, str]] = []
    before = 0
    for line in sorted(wanted & set(range(1, len(text) + 1))):
        if before and line != before + 1:
            out.append((None, "..."))
        out.append((counts.get(line), f"{line:>5}  {text[line - 1]}"))
        before = line
    return out
