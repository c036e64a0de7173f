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
    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if width is None:
        width = min(console.width, WIDEST) if console.is_terminal else PLAIN_WIDTH
    console.width = width
    if not stream.isatty():
        # FORCE_COLOR and the like are for terminals; a file gets no control codes.
        console = Console(
            file=stream,
            width=width,
            force_terminal=False,
            color_system=None,
            highlight=False,
            markup=False,
            emoji=False,
        )
    return console


def ascii_only(console: Console) -> bool:
    """Whether the stream cannot carry block characters (LANG=C, for one)."""
    return not console.encoding.lower().startswith("utf")
