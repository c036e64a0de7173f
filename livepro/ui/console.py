"""One way to open a rich console: right on terminals, plain in files."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

PLAIN_WIDTH = 100
"""Columns where there is no terminal to ask."""

WIDEST = 120
"""Beyond this, tables stretched over a wide terminal are harder to read, not easier."""


def open_console(stream: TextIO, width: int | None = None) -> Console:
    """A console on `stream`: colours and the terminal's width on a terminal (NO_COLOR and
    TERM=dumb respected), plain text of 100 columns elsewhere."""
    # FORCE_COLOR and COLUMNS are for terminals; a file gets no control codes.
    terminal = stream.isatty()
    console = Console(
        file=stream,
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.width = width or (min(console.width, WIDEST) if terminal else PLAIN_WIDTH)
    return console


def ascii_only(console: Console) -> bool:
    """Whether the stream cannot carry block characters (LANG=C, for one)."""
    return not console.encoding.lower().startswith("utf")
