"""The live view's help, on one screen."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from livepro.ui.live.state import Command
from livepro.ui.live.style import Paper

KEYS = (
    ("1 ... 6, Tab", "another view"),
    ("up down, j k, PgUp PgDn, g G", "select a row"),
    ("Enter or right", "open: thread > functions > blocks > code"),
    ("Esc or left", "back"),
    ("c", "all instructions of the selected function"),
    ("s", "sort by another column: the one marked *"),
    ("f F a", "next thread only, previous one, all"),
    ("r", "totals, or the last 2 seconds"),
    ("p or space", "pause the display (counting goes on)"),
)

OUTPUT = ("o", "what the program has written")

COMMANDS = {
    Command.RESET: ("z", "set all counts to zero"),
    Command.SAVE: ("w", "save the counts so far to a file"),
}

REDRAW = ("Ctrl-L", "draw the screen anew")

RUN = (("Ctrl-C", "goes to the program"), ("q", "leave; the program runs on, report at its end"))
ATTACHED = (("q, d, Ctrl-C", "let the program go; it runs on, and the report follows"),)

NOTES = (
    "Counts are exact. SIMD: % of the row's own instructions. phase: a letter for",
    "each set of blocks that ran for a while, - while nothing ran.",
)


def help_lines(paper: Paper, can: Iterable[Command], output: bool) -> list[Text]:
    """Keys and what they do."""
    possible = set(can)
    keys = [*KEYS, *([OUTPUT] if output else []), *(COMMANDS[c] for c in COMMANDS if c in possible), REDRAW]
    keys += ATTACHED if Command.DETACH in possible else RUN
    wide = max(len(key) for key, _ in keys)
    out = [Text(f"  {key:<{wide}}  ", "bold").append(what, "not bold") for key, what in keys]
    if len(out) + len(NOTES) <= paper.height:
        out += [Text("  " + note, "dim") for note in NOTES]
    return out
