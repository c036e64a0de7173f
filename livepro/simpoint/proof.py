"""How good a choice of points is: what they say about the run, against the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from livepro.simpoint.vectors import COMMON, Floats, Metric, Source, Vectors


class Error(NamedTuple):
    """A `metric` of the whole run and as estimated from points: per 1,000 instructions, or means over
    the intervals, where `rate` is False; below `common` it does not decide."""

    metric: Metric
    whole: float
    estimate: float
    rate: bool = True
    common: float = COMMON

    @property
    def relative(self) -> float:
        """The estimate's relative error (0.01 is 1 % too much); infinite where the run has none."""
        if self.whole == self.estimate:
            return 0.0
        return self.estimate / self.whole - 1 if self.whole else float("inf")

    @property
    def decides(self) -> bool:
        """Whether the metric is frequent enough for its relative error to matter."""
        return not self.rate or abs(self.whole) >= self.common


@dataclass(frozen=True)
class Proof:
    """`profile` is the part (0 to 1) of the instructions that the estimate puts into blocks in which
    they were not executed (None without block vectors); `errors` has every metric."""

    profile: float | None
    errors: tuple[Error, ...]

    @property
    def worst(self) -> Error | None:
        """The metric with the greatest relative error of those that decide."""
        deciding = [error for error in self.errors if error.decides]
        return max(deciding, key=lambda error: abs(error.relative), default=None)

    @property
    def error(self) -> float:
        """The greatest relative error (0.02 is 2 %) of the metrics that decide; without metrics,
        the error of the block profile."""
        worst = self.worst
        return abs(worst.relative) if worst is not None else (self.profile or 0.0)


class Prover:
    """Holds what is known of each interval and of the whole run, to compare any choice with."""

    def __init__(self, vectors: Vectors | None, sources: Sequence[Source], instructions: Floats) -> None:
        """`instructions` (N) of each interval; the `sources` are rates (`Source.rates`)."""
        self._vectors = vectors
        self._weights = instructions / instructions.sum()
        metrics: list[tuple[Metric, bool, float]] = []
        per_interval: list[Floats] = []
        whole: list[float] = []
        if vectors is not None and vectors.blocks is not None and vectors.blocks.metrics:
            blocks = vectors.blocks
            instructions = vectors.instructions
            rates = vectors.times(blocks.density) / np.where(instructions > 0, instructions, 1.0)[:, None]
            per_interval.append(1000 * rates)
            metrics += [(metric, True, COMMON) for metric in blocks.metrics]
            executed = float(instructions.sum()) or 1.0
            whole += [1000 * total / executed for total in blocks.totals]
        for source in sources:
            scale = 1000.0 if source.counts else 1.0
            per_interval.append(scale * source.values)
            metrics += [(Metric(name, source.name), source.counts, source.common) for name in source.names]
            whole += (scale * (self._weights @ source.values)).tolist()
        self._metrics = metrics
        self._whole = whole
        self._values = np.concatenate([np.zeros((len(instructions), 0)), *per_interval], axis=1)

    def prove(self, points: Sequence[tuple[int, float]]) -> Proof:
        """The errors of an estimate from (interval, weight) pairs; weights are made to sum to 1."""
        taken = np.zeros(len(self._weights))
        for interval, weight in points:
            taken[interval] += weight
        taken /= taken.sum()
        estimates = (taken @ self._values).tolist()
        errors = tuple(
            Error(metric, whole, estimate, rate, common)
            for (metric, rate, common), whole, estimate in zip(
                self._metrics, self._whole, estimates, strict=True
            )
        )
        return Proof(self._profile(taken), errors)

    def phase(self, members: Floats) -> dict[Metric, float]:
        """The metrics of some intervals, weighted by `members` (N): per 1,000 instructions, or means."""
        means = (members / members.sum()) @ self._values
        return {metric: value for (metric, *_), value in zip(self._metrics, means.tolist(), strict=True)}

    def _profile(self, taken: Floats) -> float | None:
        if self._vectors is None:
            return None
        instructions = self._vectors.instructions
        each = np.where(instructions > 0, instructions, 1.0)
        difference = self._vectors.total(taken / each - self._weights / each)
        return float(np.abs(difference).sum() / 2)
