"""MICA's result files: `<base>_{full|phases}_int[_<pid>]_pin.out`.

Columns and their order are MICA's (its README, and its source where that differs: `ilp` leads with all
instructions, each repetition of `rep` counting; `itypes` with the instructions and with that number; the
group `other` is in the intervals' file only). MICA's own lines have blanks at odd places, and lines of
intervals that lead with the interval's instructions or do not, by analysis: with `quirks` they are as MICA
writes them; else each line of intervals leads with its instructions, and a line ends where its numbers end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """The numbers of one analysis: over the whole run, or in one interval. `instructions` are those retired,
    `events` those with each repetition of `rep`."""

    instructions: int
    events: int
    values: Sequence[int]


def base_of(analysis: str, ilp_size: int) -> str:
    """How the files of an analysis begin."""
    return f"ilp-win{ilp_size}" if analysis == "ilp_one" else analysis


def name_of(base: str, *, intervals: bool, pid: int | None) -> str:
    """The name of a file; `pid` is in it if it is given."""
    extent = "phases" if intervals else "full"
    return f"{base}_{extent}_int{'' if pid is None else f'_{pid}'}_pin.out"


def full(analysis: str, line: Line, *, quirks: bool) -> str:
    """The text of a file about a whole run."""
    if analysis == "fullmemstackdist":
        return _counts(line, quirks=quirks) + f"number of instructions: {line.instructions}\n"
    values = list(line.values)
    if analysis == "ilp":
        values.insert(0, line.events)
    elif analysis == "itypes":
        values = [line.instructions, line.events, *values[:-1]]
    text = " ".join(map(str, values))
    if not quirks:
        return text + "\n"
    if analysis == "ilp_one":
        return f" {text}\n"
    return text + {"ilp": " \n", "stride": "\n", "memstackdist": " "}.get(analysis, "\n ")


def phases(analysis: str, lines: Sequence[Line], size: int, *, quirks: bool) -> Iterator[str]:
    """The text of a file about intervals of `size` instructions, a piece for each; the last one may be
    shorter."""
    for number, line in enumerate(lines, 1):
        if not quirks:
            if analysis == "fullmemstackdist":
                yield f"{line.instructions} " + " ".join(map(str, line.values)) + "\n"
            else:
                yield " ".join(map(str, (line.instructions, *line.values))) + "\n"
        elif number < len(lines):
            yield _interval(analysis, line, size)
        else:
            yield _last(analysis, line)


def _interval(analysis: str, line: Line, size: int) -> str:
    if analysis == "fullmemstackdist":
        return _counts(line, quirks=True)
    lead = {"ilp": [line.events], "stride": [], "memfootprint": [], "memstackdist": []}.get(analysis, [size])
    return " ".join(map(str, (*lead, *line.values))) + "\n"


def _last(analysis: str, line: Line) -> str:
    if analysis == "fullmemstackdist":
        return _counts(line, quirks=True) + f"number of instructions: {line.instructions}\n"
    lead = [line.events] if analysis in ("ilp", "ilp_one", "itypes") else []
    end = {"ilp": " \n", "ilp_one": "\n", "stride": "\n", "memstackdist": " "}.get(analysis, "\n ")
    return " ".join(map(str, (*lead, *line.values))) + end


def _counts(line: Line, *, quirks: bool) -> str:
    """References and first ones, then a count for each distance, in a line of its own."""
    references, cold, *counts = line.values
    told = " ".join(map(str, counts))
    return f"{references} {cold}\n{' ' if quirks else ''}{told}\n"
