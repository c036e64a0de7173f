"""Medians and ratios of what was measured, as plain data: what the JSON file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.measure import Run
from benchmarks.runners import NATIVE

OK = "ok"


def verdict(run: Run, native: Run) -> str:
    """Whether a run did what the native one did: "ok", or what differs."""
    if run.late:
        return "too long"
    if run.status != native.status:
        return f"signal {-run.status}" if run.status < 0 else f"status {run.status}"
    return OK if run.output == native.output else "other output"


def judge(runs: Sequence[Run], native: Sequence[Run]) -> str:
    """The first verdict of several runs that is not "ok", or "ok". Native runs are compared
    with the first of themselves: a program whose output varies proves nothing."""
    return next((text for run in runs if (text := verdict(run, native[0])) != OK), OK)


def summarize(runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Per runner: `cpu` and `wall` (seconds, in the order of the runs), their medians,
    `cpu_ratio` and `wall_ratio` of medians over native's (None where a verdict is not "ok", or
    native has no measurable time), and `verdict`."""
    native = runs[NATIVE]
    base_cpu, base_wall = median(r.cpu for r in native), median(r.wall for r in native)
    out: dict[str, Any] = {}
    for name, several in runs.items():
        text = judge(several, native)
        cpu, wall = median(r.cpu for r in several), median(r.wall for r in several)
        good = text == OK
        out[name] = {
            "verdict": text,
            "cpu": [r.cpu for r in several],
            "wall": [r.wall for r in several],
            "cpu_median": cpu,
            "wall_median": wall,
            "cpu_ratio": cpu / base_cpu if good and base_cpu else None,
            "wall_ratio": wall / base_wall if good and base_wall else None,
        }
    return out
