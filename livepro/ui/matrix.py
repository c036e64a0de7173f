"""Threads against instruction types or SIMD widths, in percent, in as many columns as fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from rich.text import Text

from livepro.ui.tables import GAP, INDENT, Column, Table
from livepro.ui.view import Counts, SimdKey

K = TypeVar("K", bound=Hashable)

CELL = 6
"""Columns of one percentage and of its heading's lines."""

LONGEST_NAME = 20
"""Columns that a thread's name gets at most, so that more of the matrix fits."""

HEAT = ((50.0, "bold red"), (20.0, "yellow"), (5.0, "default"), (0.0, "dim"))
"""From this percentage on, this style."""

ThreadRow = tuple[str, str, Counts]
"""Thread id, name, counts."""


def itypes_matrix(rows: Sequence[ThreadRow], width: int) -> Table:
    """Instruction-type groups of each thread; the most frequent groups, in their own order."""
    return matrix(rows, width, lambda counts: counts.itypes, group_title)


def simd_matrix(rows: Sequence[ThreadRow], width: int) -> Table:
    """SIMD set and width of each thread; the most frequent ones, most frequent first."""
    return matrix(rows, width, lambda counts: counts.simd, simd_title, ranked=True)


def matrix(
    rows: Sequence[ThreadRow],
    width: int,
    counter: Callable[[Counts], Counter[K]],
    title: Callable[[K], str],
    ranked: bool = False,
) -> Table:
    """A row per thread, a column per key of `counter`."""
    total: Counter[K] = Counter()
    for _, _, counts in rows:
        total.update(counter(counts))
    names = max([len("thread"), *(min(len(name), LONGEST_NAME) for _, name, _ in rows)])
    left = width - INDENT - max([len("tid"), *(len(tid) for tid, _, _ in rows)]) - GAP - names
    most: list[K] = []
    for key, number in total.most_common():
        left -= GAP + max([CELL - 1, *map(len, title(key).split("\n"))])
        if left < 0 or not number:
            break
        most.append(key)
    keys = most if ranked else [key for key in total if key in most]
    table = Table(
        [
            Column("tid", right=False),
            Column("thread", right=False, flexible=True),
            *[Column(title(key)) for key in keys],
        ]
    )
    for tid, name, counts in rows:
        table.add(tid, name, *[heat(counter(counts)[key], counts.instructions) for key in keys])
    return table


def heat(part: int, whole: int) -> Text:
    """A percentage without its sign, styled by size."""
    if not part:
        return Text("-", "dim")
    share = 100 * part / whole
    style = next(style for least, style in HEAT if share >= least)
    return Text("<0.1" if share < 0.05 else f"{share:.1f}", style)


def group_title(group: str) -> str:
    """A group's name, a word a line, long words shortened."""
    return "\n".join(
        word if len(word) <= CELL + 1 else word[:CELL] + "." for word in group.replace("_", " ").split()
    )


def simd_title(key: SimdKey) -> str:
    """Set over width."""
    return f"{key[0]}\n{key[1]}"
