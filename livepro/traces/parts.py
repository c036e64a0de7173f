"""Which parts of a thread's execution a trace has: all, or simulation points with what comes before them."""

from __future__ import annotations

from typing import NamedTuple

from livepro.errors import LiveproError
from livepro.formats import simpoint

FOREVER = 1 << 62


class Part(NamedTuple):
    """From instruction `start` of a thread (from 0, the warm-up before it included) up to `end`. `warmup` of
    these come before what `weight` is for."""

    name: str
    start: int
    end: int
    warmup: int = 0
    weight: float = 1.0
    interval: int = -1


ALL = Part("", 0, FOREVER)
NEVER = Part("", FOREVER - 1, FOREVER)
"""Behind the end of every thread."""


def points(simpoints: str, weights: str, interval_size: int, warmup: int) -> list[Part]:
    """The points of SimPoint's two files (`weights` may be empty) in intervals of `interval_size`
    instructions. Raises LiveproError for files that are malformed, or do not go together."""
    chosen = simpoint.read_simpoints(simpoints)
    if not chosen:
        raise LiveproError(f"{simpoints} has no simulation point.", "Choose some: livepro simpoint.")
    if weights:
        joined = simpoint.join(chosen, simpoint.read_weights(weights))
        weighted = [(point.interval, point.cluster, point.weight) for point in joined]
    else:
        weighted = [(point.interval, point.cluster, 1.0) for point in sorted(chosen)]
    out = []
    for interval, cluster, weight in weighted:
        begin = interval * interval_size
        before = min(warmup, begin)
        out.append(Part(f"point{cluster}", begin - before, begin + interval_size, before, weight, interval))
    return out
