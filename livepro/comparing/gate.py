"""Whether a run may pass: its counts against a baseline's, within limits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from livepro.comparing.changes import TOTAL, Change, Document, changes

REGRESSION = 3
"""Exit status of a regression, as gungraun (iai-callgrind) has it."""

SOFT = 0.01
"""The growth that is let pass where no limit is given."""

FLOOR = 0.001
"""The part of the run that a function or thread must be for its growth to matter."""


@dataclass(frozen=True)
class Limits:
    """`soft` is the part by which a count may grow (None: any), `hard` the instructions that the whole run
    may execute (None: any), `per` what is compared besides the whole run: "" for nothing,
    "function" or "thread". Of these, parts below `floor` of both runs are not compared."""

    soft: float | None = SOFT
    hard: int | None = None
    per: str = ""
    floor: float = FLOOR


class Outcome(StrEnum):
    """What came of one comparison."""

    PASSED = "passed"
    IMPROVED = "improved"  # shrank by more than the soft limit
    REGRESSED = "regressed"
    NEW = "new"  # a function or thread that the baseline has not: the whole run's count covers it


class Verdict(NamedTuple):
    """One count judged. `limit` says which limit was broken, in words; empty where none was."""

    change: Change
    outcome: Outcome
    limit: str = ""


def judge(before: Document | None, after: Document, limits: Limits) -> list[Verdict]:
    """A verdict on the whole run and, as `limits` say, on each function or thread, what changed most first.
    Without a baseline (`before` None) only the hard limit is looked at."""
    if before is None:
        total = Change("total", TOTAL, 0, after["instructions"])
        broken = _hard(total, limits)
        return [Verdict(total, Outcome.REGRESSED if broken else Outcome.PASSED, broken)]
    found = changes(before, after)
    least = limits.floor * max(before["instructions"], after["instructions"])
    rows = found["total"] + [row for row in found.get(limits.per, ()) if max(row.before, row.after) >= least]
    return [_judged(row, limits) for row in rows]


def regressed(verdicts: list[Verdict]) -> bool:
    """Whether anything broke a limit."""
    return any(v.outcome is Outcome.REGRESSED for v in verdicts)


def grown_beyond(before: int, after: int, soft: float) -> bool:
    """Whether `after` is more than `soft` (a part) above `before`."""
    return after - before > soft * before


def _judged(row: Change, limits: Limits) -> Verdict:
    broken = _hard(row, limits)
    if broken:
        return Verdict(row, Outcome.REGRESSED, broken)
    if limits.soft is None:
        return Verdict(row, Outcome.PASSED)
    if not row.before and row.kind != "total":
        return Verdict(row, Outcome.NEW)
    if grown_beyond(row.before, row.after, limits.soft):
        return Verdict(row, Outcome.REGRESSED, f"it may grow by {100 * limits.soft:g} %")
    improved = row.before - row.after > limits.soft * row.before
    return Verdict(row, Outcome.IMPROVED if improved else Outcome.PASSED)


def _hard(row: Change, limits: Limits) -> str:
    if row.kind == "total" and limits.hard is not None and row.after > limits.hard:
        return f"it may have {limits.hard:,}"
    return ""
