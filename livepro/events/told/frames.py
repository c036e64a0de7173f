"""What analyses told, as the rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from livepro.errors import LiveproError
from livepro.events.analysis import Analysis
from livepro.events.finding import find

Rows = list[dict[str, Any]]


def tables(analyses: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Rows]:
    """The rows of each table, by the analysis's name and what `Analysis.frames` calls the table:
    ``cachesim``, ``cachesim.lines``; each row with ``pid`` and ``image`` first. Of a run in intervals
    ``NAME.intervals`` has a row for each of each thread. `analyses` are those of a `RunResult`. (One that was
    given as an object, and has no name that it is found by, is taken for one without tables of its own.)"""
    out: dict[str, Rows] = {}
    for name, told in analyses.items():
        try:
            analysis = find(name)[1]
        except LiveproError:
            analysis = Analysis()
        for process in told:
            key = {"pid": process["pid"], "image": process["image"]}
            for table, rows in analysis.frames(process["result"]).items():
                out.setdefault(name + table, []).extend({**key, **row} for row in rows)
            for thread in process.get("intervals") or ():
                who = {**key, "thread": thread["thread"], "tid": thread["tid"]}
                columns = thread["values"]
                for number, values in enumerate(zip(*columns.values(), strict=True)):
                    row = {**who, "interval": number, **dict(zip(columns, values, strict=True))}
                    out.setdefault(f"{name}.intervals", []).append(row)
    return out
