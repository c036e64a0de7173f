"""Compact tables without lines: columns that fit, names shortened in the middle.

rich's own tables cut text at its end with a character that not every stream
can carry; function names and paths tell most at both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.text import Text

from livepro.ui.text import printable, shortened

GAP = 2
INDENT = 2
NARROWEST = 8
"""A flexible column is not squeezed below this."""

Cell = str | Text


class Column(NamedTuple):
    """A column: numbers align right, text left. A flexible one gives way where space is
    short; `weight` says how much of the space it gets against the others. `least` is a
    width that it has in any case, so that a table drawn again and again stands still."""

    title: str
    right: bool = True
    flexible: bool = False
    weight: int = 1
    style: str = ""
    least: int = 0


@dataclass
class Table:
    """Rows of as many cells as there are columns; a title may have a second line."""

    columns: Sequence[Column]
    rows: list[Sequence[Cell]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """Append a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def widths(self, total: int) -> list[int]:
        """Columns' widths so that the table fits `total` columns where it can."""
        natural = [
            max(
                [len(line) for line in column.title.split("\n")]
                + [len(row[i]) for row in self.rows]
                + [column.least]
            )
            for i, column in enumerate(self.columns)
        ]
        space = total - INDENT - GAP * (len(natural) - 1) - sum(natural)
        flexible = [i for i, column in enumerate(self.columns) if column.flexible]
        while space < 0 and flexible:
            # Take a column at a time from the one that is widest for its weight.
            at = max(flexible, key=lambda i: natural[i] / self.columns[i].weight)
            if natural[at] <= NARROWEST:
                break
            natural[at] -= 1
            space += 1
        return natural

    def lines(self, total: int, ascii_only: bool = False) -> list[Text]:
        """The table as lines of at most `total` columns, headings first."""
        widths = self.widths(total)
        heights = max(column.title.count("\n") for column in self.columns) + 1
        titles = [column.title.split("\n") for column in self.columns]
        padded = [[""] * (heights - len(title)) + title for title in titles]
        head = [self.line([t[h] for t in padded], widths, ascii_only, "dim") for h in range(heights)]
        return head + [self.line(row, widths, ascii_only) for row in self.rows]

    def line(self, cells: Sequence[Cell], widths: Sequence[int], ascii_only: bool, style: str = "") -> Text:
        """One row, its trailing blanks left out."""
        out = Text(" " * INDENT)
        for i, (cell, width, column) in enumerate(zip(cells, widths, self.columns, strict=True)):
            plain = cell.plain if isinstance(cell, Text) else cell
            text = shortened(printable(plain, ascii_only), width, ascii_only)
            blank = " " * (width - len(text))
            gap = " " * GAP if i else ""
            out.append(gap + (blank if column.right else ""))
            out.append(text, (str(cell.style) if isinstance(cell, Text) else "") or style or column.style)
            out.append("" if column.right else blank)
        out.rstrip()
        return out
