"""Words, bars and colours of the live view. Colours only repeat what the text says: it is
readable without them, on dark and on light backgrounds."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from livepro.model.live import Measure
from livepro.ui.text import bar, grouped, percent, scaled, shortened

LEVELS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = ".:-=+*#@"
PHASES = ("cyan", "green", "magenta", "blue", "red")
"""Colours of phases, in turn; their letters tell them apart."""


@dataclass(frozen=True, slots=True)
class Paper:
    """What there is to draw on: columns and lines; `ascii` where the terminal takes no other characters."""

    width: int
    height: int
    ascii: bool = False

    def cut(self, text: str, width: int) -> str:
        """`text` in at most `width` columns."""
        return shortened(text, width, self.ascii)

    def bar(self, share: float, width: int) -> str:
        """A bar for a share of 0 to 1."""
        return bar(share, width, self.ascii)

    def level(self, share: float) -> str:
        """One character as high as `share` (0 to 1); blank for nothing at all."""
        levels = ASCII_LEVELS if self.ascii else LEVELS
        return " " if share <= 0 else levels[min(len(levels) - 1, int(share * len(levels)))]

    def sides(self, left: Text, right: Text) -> Text:
        """One line with something at both ends; the left end gives way."""
        room = self.width - len(right) - 1
        out = left.copy()
        if len(out) > room:
            out = Text(self.cut(out.plain, max(0, room)), out.style)
            if left.spans:
                out.stylize(left.spans[0].style, left.spans[0].start, left.spans[0].end)
        out.append(" " * (self.width - len(out) - len(right)))
        return out.append(right)


def fitted(line: Text, width: int) -> Text:
    """The line cut off at `width` columns."""
    if len(line) > width:
        line = line.copy()
        line.right_crop(len(line) - width)
    return line


def rate(measure: Measure) -> str:
    """A rate with its unit: ``812 M/s``."""
    return f"{scaled(measure.rate)}/s" if measure.rate >= 0.5 else "-"


def amount(measure: Measure, rates: bool) -> str:
    """The total, or where rates are shown, the rate."""
    if rates:
        return rate(measure)
    return grouped(measure.total) if measure.total else "-"


def size(measure: Measure, rates: bool) -> float:
    """What shares are made of."""
    return measure.rate if rates else measure.total


def share(part: Measure, whole: Measure, rates: bool) -> str:
    """A part of a whole in percent."""
    if rates:
        # Sums of rates: rounding may take a part above the whole.
        return percent(min(round(part.rate * 1000), round(whole.rate * 1000)), round(whole.rate * 1000))
    return percent(min(part.total, whole.total), whole.total)


def fraction(part: Measure, whole: Measure, rates: bool) -> float:
    """The same as a number of 0 to 1."""
    base = size(whole, rates)
    return min(1.0, size(part, rates) / base) if base > 0 else 0.0


def clock(seconds: float) -> str:
    """0:07, 12:34, 1:02:03: no digit that changes more often than the screen."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
