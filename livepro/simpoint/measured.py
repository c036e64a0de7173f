"""What simulators and MICA's analyses told of each interval of a thread, as numbers for the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from livepro.formats.mica_intervals import KINDS
from livepro.model import ProcessResult, RunResult
from livepro.simpoint.vectors import Source

_COMMON = 1.0
"""Misses and the like matter from one per 1,000 instructions on."""

_MISSES = {
    "I1 misses": ("I1mr",),
    "D1 misses": ("D1mr", "D1mw"),
    "LL misses": ("ILmr", "DLmr", "DLmw"),
    "mispredicted": ("Bcm", "Bim"),
}
"""What is told of the simulator, and the events of Cachegrind's that it is the sum of."""


def measured(result: RunResult, process: ProcessResult, thread: int) -> list[Source]:
    """The sources of a thread of a process, by its place in it, of the analyses that a run in intervals had:
    for the proof only, their weight is 0."""
    found = []
    for name, sources in (
        ("cachesim", _simulated),
        ("hierarchy", _levels),
        ("predictors", _predicted),
        ("mica", _characterised),
    ):
        for told in result.analyses.get(name, ()):
            if (told["pid"], told["image"]) == (process.pid, process.image):
                found += sources(told, process, thread)
    return found


def _simulated(told: Mapping[str, Any], process: ProcessResult, thread: int) -> list[Source]:
    values = _of_thread(told.get("intervals", ()), process, thread)
    if values is None:
        return []
    columns = {
        name: np.sum([values["values"][event] for event in events], axis=0)
        for name, events in _MISSES.items()
        if all(event in values["values"] for event in events)
    }
    return [_source("simulated", tuple(columns), list(columns.values()), process, thread, counts=True)]


def _levels(told: Mapping[str, Any], process: ProcessResult, thread: int) -> list[Source]:
    """The misses of each level of a hierarchy: of fetches, reads and writes together."""
    values = _of_thread(told.get("intervals", ()), process, thread)
    if values is None:
        return []
    columns: dict[str, list[Any]] = {}
    for event, counts in values["values"].items():
        columns.setdefault(f"{event[:-2]} misses", []).append(counts)
    sums = [np.sum(counts, axis=0) for counts in columns.values()]
    return [_source("simulated", tuple(columns), sums, process, thread, counts=True)]


def _predicted(told: Mapping[str, Any], process: ProcessResult, thread: int) -> list[Source]:
    """What each predictor got wrong."""
    values = _of_thread(told.get("intervals", ()), process, thread)
    if values is None:
        return []
    wrong = {name[:-2]: counts for name, counts in values["values"].items() if name.endswith("_m")}
    columns = [np.asarray(counts, np.float64) for counts in wrong.values()]
    return [
        _source(
            "predicted",
            tuple(f"{name} mispredicted" for name in wrong),
            columns,
            process,
            thread,
            counts=True,
        )
    ]


def _characterised(told: Mapping[str, Any], process: ProcessResult, thread: int) -> list[Source]:
    own = _of_thread(told["result"]["threads"], process, thread)
    if own is None:
        return []
    out = []
    settings = told["result"]["settings"]
    for name in own["values"]:
        rows = np.array([interval["values"][name] for interval in own["intervals"]], np.float64)
        kind = KINDS.get(name)
        columns = tuple(settings["groups"]) if name == "itypes" else () if kind is None else kind.columns
        if len(columns) != rows.shape[1]:
            columns = tuple(f"column {n}" for n in range(1, rows.shape[1] + 1))
        counts = kind is None or kind.counts
        out.append(_source(name, columns, list(rows.T), process, thread, counts=counts))
    return out


def _of_thread(
    threads: Sequence[Mapping[str, Any]], process: ProcessResult, thread: int
) -> Mapping[str, Any] | None:
    """What is told of a thread: of those with its tid, which may be given again, that with its place."""
    tid = process.threads[thread].tid
    place = sum(other.tid == tid for other in process.threads[:thread])
    same = [told for told in threads if told["tid"] == tid]
    return same[place] if place < len(same) else None


def _source(
    name: str,
    columns: tuple[str, ...],
    values: Sequence[Any],
    process: ProcessResult,
    thread: int,
    *,
    counts: bool,
) -> Source:
    instructions = np.array([i.instructions for i in process.threads[thread].intervals], np.float64)
    table = np.array(values, np.float64).T
    return Source(name, columns, table, instructions, counts, weight=0.0, common=_COMMON)
