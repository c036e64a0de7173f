"""A trace in the Trace Event Format, which ui.perfetto.dev opens: counters over time for each thread
(instructions per second, SIMD share), and the run's phases as slices.

Time is that of the report's timeline. A report without one, but with intervals, has the
thread's own instructions for time: one is a nanosecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from livepro.exports.rows import Document, text

_MICRO = 1e6


def export(document: Document) -> bytes:
    """The trace."""
    events = [*_names(document), *(_timeline(document) if document.get("timeline") else _moments(document))]
    return text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))


def _names(document: Document) -> Iterator[dict[str, Any]]:
    for process in document["processes"]:
        name = " ".join(process["command"])
        yield _event("M", "process_name", process["pid"], process["pid"], 0, {"name": name})
        for thread in process["threads"]:
            yield _event("M", "thread_name", process["pid"], thread["tid"], 0, {"name": thread["name"]})


def _timeline(document: Document) -> Iterator[dict[str, Any]]:
    line = document["timeline"]
    seconds = line["seconds"]
    for thread in line["threads"]:
        had = had_simd = 0
        before = seconds[thread["first"] - 1] if thread["first"] else 0.0
        key = f"{thread['name']} {thread['tid']}"
        ends = seconds[thread["first"] :]
        for now, count, simd in zip(ends, thread["instructions"], thread["simd"], strict=True):
            grown = count - had
            rate = grown / max(now - before, 1e-6)
            share = 100 * (simd - had_simd) / grown if grown > 0 else 0.0
            where = thread["pid"], thread["tid"], before * _MICRO
            yield _event("C", f"instructions/s {key}", *where, {"value": round(rate)})
            yield _event("C", f"SIMD % {key}", *where, {"value": round(share, 2)})
            before, had, had_simd = now, count, simd
    at = 0.0
    pid = document["processes"][0]["pid"] if document["processes"] else 0
    for length, phase in zip(line["phases"]["seconds"], line["phases"]["phase"], strict=True):
        if phase >= 0:
            yield _event("X", f"phase {phase + 1}", pid, pid, at * _MICRO, {}) | {"dur": length * _MICRO}
        at += length


def _moments(document: Document) -> Iterator[dict[str, Any]]:
    for process in document["processes"]:
        for thread in process["threads"]:
            at = 0
            moments = thread.get("moments") or {"instructions": [], "simd": [], "phase": []}
            for count, simd, phase in zip(*moments.values(), strict=True):
                where = process["pid"], thread["tid"], at / 1000
                share = round(100 * simd / count, 2) if count else 0.0
                yield _event("C", f"SIMD % {thread['name']} {thread['tid']}", *where, {"value": share})
                if phase >= 0:
                    yield _event("X", f"phase {phase + 1}", *where, {}) | {"dur": count / 1000}
                at += count


def _event(kind: str, name: str, pid: int, tid: int, ts: float, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": kind, "name": name, "pid": pid, "tid": tid, "ts": round(ts, 3), "args": args}
