"""What simulators and MICA's analyses told of each interval of a thread, as numbers for the proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """The misses of Cachegrind's caches and predictors."""
    return _counted("simulated", told, process, thread, lambda values: {
        name: [values[event] for event in events]
        for name, events in _MISSES.items()
        if all(event in values for event in events)
    })  # fmt: skip


def _levels(told: Mapping[str, Any], process: ProcessResult, thread: int) -> list[Source]:
    """The misses of each level of a hierarchy: of fetches, reads and writes together."""

    def columns(values: Mapping[str, Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for event, counts in values.items():
            found.setdefault(f"{event[:-2]} misses", []).append(counts)
        return found

    return _counted("simulated", told, process, thread, columns)


def _predicted(told: Mapping[str, Any], process: ProcessResult, thread: int) -> list[Source]:
    """What each predictor got wrong."""
    return _counted("predicted", told, process, thread, lambda values: {
        f"{name[:-2]} mispredicted": [counts] for name, counts in values.items() if name.endswith("_m")
    })  # fmt: skip


def _counted(
    name: str,
    told: Mapping[str, Any],
    process: ProcessResult,
    thread: int,
    columns: Callable[[Mapping[str, Any]], Mapping[str, Sequence[Any]]],
) -> list[Source]:
    """A source whose columns are sums of counts by interval: of those that `columns` gives for each, from
    what is told of a thread by event."""
    values = _of_thread(told.get("intervals", ()), process, thread)
    if values is None:
        return []
    sums = {column: np.sum(counts, axis=0) for column, counts in columns(values["values"]).items()}
    return [_source(name, tuple(sums), list(sums.values()), process, thread, counts=True)]


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
