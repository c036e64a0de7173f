"""Cachegrind's output file: written for cg_annotate, cg_diff and KCachegrind, and read.

The grammar is that of its manual ("Cachegrind Output File Format"): `desc:` lines, `cmd:`, `events:`,
then `fl=` and `fn=` lines, each followed by lines of a source line number and the counts in the order of
the events, and `summary:` with the totals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from livepro.errors import LiveproError

UNKNOWN = "???"
"""A file or function without a name, as Cachegrind writes it."""


@dataclass
class Profile:
    """What such a file holds: for each (file, function, line) the counts of `events`, in order."""

    events: tuple[str, ...]
    command: str = ""
    descriptions: list[str] = field(default_factory=list)
    lines: dict[tuple[str, str, int], tuple[int, ...]] = field(default_factory=dict)

    @property
    def totals(self) -> tuple[int, ...]:
        """The sums of all lines."""
        return _sum(self.lines.values(), len(self.events))

    def functions(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """The counts of each (file, function)."""
        out: dict[tuple[str, str], tuple[int, ...]] = {}
        for (file, function, _), counts in self.lines.items():
            known = out.get((file, function))
            out[file, function] = (
                counts if known is None else tuple(map(sum, zip(known, counts, strict=True)))
            )
        return out

    def minus(self, other: Profile) -> Profile:
        """The differences. Raises LiveproError if the two count other events."""
        if self.events != other.events:
            raise LiveproError(
                f"The files count different events ({' '.join(self.events)}; {' '.join(other.events)})."
            )
        zero = (0,) * len(self.events)
        lines = {}
        for key in {**self.lines, **other.lines}:
            pair = zip(self.lines.get(key, zero), other.lines.get(key, zero), strict=True)
            counts = tuple(mine - theirs for mine, theirs in pair)
            if any(counts):
                lines[key] = counts
        return Profile(self.events, f"{self.command} minus {other.command}", self.descriptions, lines)


def _sum(rows: Iterable[Sequence[int]], width: int) -> tuple[int, ...]:
    total = Counter(dict.fromkeys(range(width), 0))
    for row in rows:
        for n, count in enumerate(row):
            total[n] += count
    return tuple(total[n] for n in range(width))


def write(stream: TextIO, profile: Profile) -> None:
    """Write a profile; names have no line breaks in them."""
    for description in profile.descriptions:
        stream.write(f"desc: {_clean(description)}\n")
    stream.write(f"cmd: {_clean(profile.command)}\n")
    stream.write(f"events: {' '.join(profile.events)}\n")
    file = function = None
    for key in sorted(profile.lines):
        if key[0] != file:
            file, function = key[0], None
            stream.write(f"fl={_clean(file) or UNKNOWN}\n")
        if key[1] != function:
            function = key[1]
            stream.write(f"fn={_clean(function) or UNKNOWN}\n")
        stream.write(f"{key[2]} {' '.join(map(str, profile.lines[key]))}\n")
    stream.write(f"summary: {' '.join(map(str, profile.totals))}\n")


def _clean(text: str) -> str:
    return text.replace("\n", "?")


def read(stream: TextIO, name: str) -> Profile:
    """Read a profile. Raises LiveproError that names the line which is none of such a file."""
    out: Profile | None = None
    command, descriptions = "", []
    file = function = UNKNOWN
    for number, text in enumerate(stream, 1):
        line = text.strip("\n")
        key, _, rest = (
            line.partition(":") if not line.startswith(("fl=", "fi=", "fe=", "fn=")) else ("", "", "")
        )
        try:
            if not line or line.startswith("#"):
                continue
            if key == "desc":
                descriptions.append(rest.strip())
            elif key == "cmd":
                command = rest.strip()
            elif key == "events":
                out = Profile(tuple(rest.split()), command, descriptions)
            elif key == "summary":
                if out is None or tuple(map(int, rest.split())) != out.totals:
                    raise ValueError("the summary is not the sum of the lines")
            elif line.startswith(("fl=", "fi=", "fe=")):
                file = line[3:]
            elif line.startswith("fn="):
                function = line[3:]
            else:
                if out is None:
                    raise ValueError("counts before `events:`")
                where, *counts = (0 if word == "." else int(word) for word in line.split())
                counts += [0] * (len(out.events) - len(counts))
                if len(counts) != len(out.events):
                    raise ValueError("more counts than events")
                place = file, function, where
                known = out.lines.get(place, (0,) * len(counts))
                out.lines[place] = tuple(map(sum, zip(known, counts, strict=True)))
        except ValueError as error:
            raise LiveproError(
                f"{name}, line {number}: {error}.", "It is no output file of Cachegrind's."
            ) from None
    if out is None:
        raise LiveproError(f"{name} has no `events:` line.", "It is no output file of Cachegrind's.")
    return out
