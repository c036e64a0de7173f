"""Simulation points out of a clustering: which interval stands for each phase, and for how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from livepro.errors import LiveproError
from livepro.formats.simpoint import SimPoint, Weight
from livepro.simpoint.clustering import Clustering
from livepro.simpoint.vectors import Floats

_SHORT = 0.5
"""Of two intervals one of which is shorter than this part of its phase's median, the other represents it."""


class Point(NamedTuple):
    """Interval `interval` (from 0) stands for phase `phase` (from 0), which has `intervals` of them and
    the part `weight` of all instructions. The interval begins after `start` instructions and has
    `instructions`; `distance` is how far it is from its phase's centroid."""

    interval: int
    phase: int
    weight: float
    intervals: int
    start: int
    instructions: int
    distance: float


@dataclass(frozen=True)
class Choice:
    """Points in order of interval, of `k` phases, that cover the part `coverage` of the run.

    The points' weights sum to 1 also where `coverage` is less. `clustering` has every interval's phase.
    """

    k: int
    points: tuple[Point, ...]
    coverage: float
    clustering: Clustering

    @property
    def simpoints(self) -> list[SimPoint]:
        """As SimPoint's file lists them."""
        return [SimPoint(point.interval, point.phase) for point in self.points]

    @property
    def weights(self) -> list[Weight]:
        """In the same order."""
        return [Weight(point.weight, point.phase) for point in self.points]


def choose(
    clustering: Clustering,
    instructions: Floats,
    weights: Floats,
    *,
    coverage: float = 1.0,
    early: float = 0.0,
) -> Choice:
    """The points of a clustering.

    `instructions` (N) of each interval, `weights` (N) what each counts for: its instructions, or 1.
    A phase is represented by the interval nearest to its centroid, the earliest of equals; with
    `early` above 0 by the earliest of those that are nearest and make up this part of the phase.
    With a `coverage` below 1, the heaviest phases that reach it are kept.
    """
    sizes = np.bincount(clustering.labels, weights, minlength=clustering.k).astype(np.float64)
    kept = _heaviest(sizes, coverage)
    covered = float(sizes[kept].sum())
    behind = np.cumsum(instructions)
    points = []
    for phase in kept:
        chosen = _representative(
            np.flatnonzero((clustering.labels == phase) & (weights > 0)),
            clustering,
            weights,
            instructions,
            early,
        )
        points.append(
            Point(
                interval=chosen,
                phase=phase,
                weight=float(sizes[phase]) / covered,
                intervals=int((clustering.labels == phase).sum()),
                start=round(behind[chosen] - instructions[chosen]),
                instructions=round(instructions[chosen]),
                distance=float(clustering.distance[chosen]),
            )
        )
    return Choice(clustering.k, tuple(sorted(points)), covered / float(sizes.sum()), clustering)


def _heaviest(sizes: Floats, coverage: float) -> list[int]:
    """The fewest phases, the heaviest first, that make up the part `coverage` of all; none that is empty."""
    order = [phase for phase in np.argsort(-sizes, kind="stable").tolist() if sizes[phase] > 0]
    reached = np.cumsum(sizes[order]) / sizes.sum()
    # Sums of parts of 1 may miss 1 by their rounding.
    needed = int(np.searchsorted(reached, min(coverage, 1.0) - 1e-12)) + 1
    return order[:needed]


def _representative(
    members: np.ndarray[tuple[int], np.dtype[np.intp]],
    clustering: Clustering,
    weights: Floats,
    instructions: Floats,
    early: float,
) -> int:
    long_enough = instructions[members] >= _SHORT * np.median(instructions[members])
    members = members[long_enough]
    # Equal intervals have distances that differ in the last digits.
    distance = np.round(clustering.distance[members], 12)
    order = np.argsort(distance, kind="stable")
    if early <= 0:
        return int(members[order[0]])
    shares = np.cumsum(weights[members[order]])
    last = min(int(np.searchsorted(shares, early * shares[-1])), len(order) - 1)
    return int(members[distance <= distance[order[last]]].min())


def from_files(points: list[SimPoint], weights: list[Weight], names: tuple[str, str], intervals: int) -> None:
    """Check a choice read from files `names` against a run of so many intervals. Raises LiveproError."""
    for line, (point, weight) in enumerate(zip(points, weights, strict=False), 1):
        if point.cluster != weight.cluster:
            raise LiveproError(
                f"{names[1]}:{line}: the weight is of cluster {weight.cluster}, line {line} of {names[0]} "
                f"has a point of cluster {point.cluster}.",
                "Take both files from the same run of SimPoint: their lines belong together.",
            )
        if point.interval >= intervals:
            raise LiveproError(
                f"{names[0]}:{line}: the point is interval {point.interval}, the run has only {intervals} "
                f"(0 to {intervals - 1}).",
                "Give the vectors that the points were chosen from, with the same interval size.",
            )
    if len(points) != len(weights):
        raise LiveproError(
            f"{names[0]} has {len(points)} points, {names[1]} has {len(weights)} weights.",
            "Take both files from the same run of SimPoint.",
        )
    if not points:
        raise LiveproError(f"{names[0]} has no point.", "Check that it is a file that SimPoint wrote.")
