"""The run over time: how fast, how much SIMD, in which phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from livepro.model.live import Moment
from livepro.ui.live.style import PHASES, Paper
from livepro.ui.text import scaled

LABEL = 8
"""Columns of a strip's name."""

NOTE = 18
"""Columns of the note behind a strip."""

IDLE = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """Moments that share a column."""

    seconds: float
    instructions: int
    simd: int
    phase: int | None

    @property
    def rate(self) -> float:
        """Instructions a second."""
        return max(0, self.instructions) / self.seconds if self.seconds > 0 else 0.0


def columns(moments: Sequence[Moment], width: int) -> list[Column]:
    """The moments in at most `width` columns: as many in each as it takes."""
    each = max(1, -(-len(moments) // width))
    return [column(moments[at : at + each]) for at in range(0, len(moments), each)]


def column(moments: Sequence[Moment]) -> Column:
    """Moments as one: of the phase that had most instructions."""
    weights: dict[int, int] = {}
    for moment in moments:
        if moment.phase is not None:
            weights[moment.phase] = weights.get(moment.phase, 0) + max(1, moment.instructions)
    return Column(
        sum(m.seconds for m in moments),
        sum(m.instructions for m in moments),
        sum(m.simd for m in moments),
        max(weights, key=lambda phase: weights[phase]) if weights else None,
    )


def strips(moments: Sequence[Moment], paper: Paper, *, simd: bool) -> list[Text]:
    """Lines for rate, SIMD share (if wanted) and phase."""
    width = paper.width - LABEL - NOTE
    shown = columns(moments, width)
    peak = max((c.rate for c in shown), default=0.0)
    lines = [
        strip(
            "rate", [(paper.level(c.rate / peak if peak else 0.0), "cyan") for c in shown], paper, _peak(peak)
        )
    ]
    if simd:
        shares = [c.simd / c.instructions if c.instructions > 0 else 0.0 for c in shown]
        most = max(shares, default=0.0)
        levels = [(paper.level(s), "magenta") for s in shares]
        lines.append(strip("SIMD", levels, paper, f"peak {100 * most:.1f} %" if most else "none"))
    letters = [phase(c.phase) for c in shown]
    # The last column is still filling.
    each = shown[-2].seconds if len(shown) > 1 else 0.0
    lines.append(strip("phase", letters, paper, _span(each)))
    return lines


def _peak(rate: float) -> str:
    return f"peak {scaled(rate)}/s" if rate >= 0.5 else ""


def _span(seconds: float) -> str:
    if not seconds:
        return ""
    text = f"{seconds:.2g}" if seconds < 9.5 else f"{seconds:.0f}"
    return f"1 column = {text} s"


def phase(number: int | None) -> tuple[str, str]:
    """A phase's letter and style."""
    if number is None:
        return IDLE, "dim"
    return chr(ord("A") + number % 26), PHASES[number % len(PHASES)]


def strip(name: str, cells: Sequence[tuple[str, str]], paper: Paper, note: str) -> Text:
    """A name, one character for each column, and a note at the right end."""
    line = Text(f"  {name:<{LABEL - 2}}")
    for character, style in cells:
        line.append(character, style)
    line.append(" " * max(0, paper.width - LABEL - NOTE - len(cells)))
    return line.append(f"{note:>{NOTE}}", "dim")
