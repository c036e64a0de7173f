"""Two runs side by side, on a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.text import Text

from livepro.comparing.changes import KINDS, TITLES, Change
from livepro.comparing.gate import Outcome, Verdict
from livepro.ui.console import ascii_only, open_console
from livepro.ui.page import Page
from livepro.ui.tables import Column, Table
from livepro.ui.text import grouped

_COLUMNS = (
    Column("", right=False, flexible=True, weight=3),
    *(Column(title) for title in ("before", "after", "change", "")),
    Column("", right=False),
)
_STYLES = {"grew": "red", "appeared": "red", "shrank": "green", "vanished": "green", "same": "dim"}
_OUTCOMES = {Outcome.REGRESSED: "bold red", Outcome.IMPROVED: "green", Outcome.NEW: "yellow"}


def print_changes(found: dict[str, list[Change]], stream: TextIO, top: int, width: int | None = None) -> None:
    """Print a table for each kind of change, at most `top` rows of what changed in each."""
    page = _page(stream, width)
    for kind in KINDS:
        rows = [row for row in found[kind] if row.delta or kind == "total"]
        same = len(found[kind]) - len(rows)
        note = _note(len(rows) - top, same)
        page.title(TITLES[kind], note)
        if rows:
            page.table(_table(rows[:top]))


def print_verdicts(verdicts: list[Verdict], stream: TextIO, top: int, width: int | None = None) -> None:
    """Print what a gate found: what broke a limit, and what changed."""
    page = _page(stream, width)
    failed = [v for v in verdicts if v.outcome is Outcome.REGRESSED]
    shown = failed + [v for v in verdicts if v not in failed and (v.change.delta or v.change.kind == "total")]
    table = Table(_COLUMNS)
    for v in shown[: max(top, len(failed))]:
        words = f"{v.outcome}: {v.limit}" if v.limit else str(v.outcome)
        table.add(v.change.name, *_numbers(v.change), Text(words, _OUTCOMES.get(v.outcome, "dim")))
    page.table(table)
    rest = len(verdicts) - len(table.rows)
    if rest:
        page.print(Text(f"  {rest:,} more compared, within the limits", "dim"))


def _page(stream: TextIO, width: int | None) -> Page:
    console = open_console(stream, width)
    return Page(console, console.width, ascii_only(console))


def _note(more: int, same: int) -> str:
    parts = [f"{more:,} more changed"] if more > 0 else []
    parts += [f"{same:,} did not change"] if same else []
    return ", ".join(parts)


def _table(rows: list[Change]) -> Table:
    table = Table(_COLUMNS)
    for row in rows:
        table.add(row.name, *_numbers(row), Text(row.status, _STYLES[row.status]))
    return table


def _numbers(row: Change) -> tuple[str, str, str, str]:
    growth = "" if row.growth is None else f"{100 * row.growth:+.2f} %"
    if not row.before and row.kind == "total":  # without a baseline
        return "-", grouped(row.after), "-", ""
    return (
        grouped(row.before) if row.before else "-",
        grouped(row.after) if row.after else "-",
        f"{row.delta:+,}" if row.delta else "0",
        growth if row.delta else "",
    )
