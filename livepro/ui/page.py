"""Where a summary goes: titles, tables and lines on a console of some width."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from livepro.ui.tables import INDENT, Table
from livepro.ui.text import percent, shortened


class Page(NamedTuple):
    """Where the summary goes: a console, its width, whether it takes ASCII only."""

    console: Console
    width: int
    plain: bool

    def title(self, text: str, note: str = "") -> None:
        """A section's heading, a note behind it."""
        line = Text("\n")
        line.append(text, "bold")
        if note:
            room = self.width - len(text) - 2
            line.append("  " + shortened(note, room, self.plain), "dim")
        self.print(line)

    def table(self, table: Table) -> None:
        """A table."""
        for line in table.lines(self.width, self.plain):
            self.print(line)

    def print(self, line: Text | str) -> None:
        """A line as it is: never wrapped, never parsed."""
        self.console.print(line, soft_wrap=True)

    def shares(self, label: str, counts: Counter[str], whole: int) -> None:
        """What something consists of on one line, as much as fits, the most frequent first."""
        parts = [
            f"{name.lower().replace('_', ' ')} {percent(number, whole)}"
            for name, number in counts.most_common()
        ]
        while len(parts) > 1 and INDENT + len(label) + len(", ".join(parts)) > self.width:
            parts.pop()
        self.print(Text(" " * INDENT + label + ", ".join(parts), "dim"))
