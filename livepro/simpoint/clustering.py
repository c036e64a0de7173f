"""k-means over the points, and the Bayesian information criterion that tells how many clusters are enough."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from livepro.errors import LiveproError
from livepro.simpoint.vectors import Floats, Ints

MOST_CLUSTERS = 30
"""SimPoint's default for maxK, where there are intervals enough."""

_SMALLEST_SPREAD = 1e-9
"""Variance, as a part of that with one cluster, below which clusters count as equally tight: equal
intervals have none at all, and the criterion its logarithm."""


class Clustering(NamedTuple):
    """N points in `k` clusters: `labels` (int64, N) from 0 in order of first appearance, `centroids`
    (float64, k x D), `distance` (float64, N) from each point to its centroid, `score` the
    Bayesian information criterion (greater is better)."""

    k: int
    labels: Ints
    centroids: Floats
    distance: Floats
    score: float


class Clusterer:
    """Clusters the same points for any k, each k once.

    `weights` (float64, N) say how much each point counts: its interval's instructions, or 1 for all.
    Several initialisations (`inits`) of at most `iterations` iterations, of which the tightest counts,
    as SimPoint does. Everything follows from `seed`.
    """

    def __init__(
        self,
        points: Floats,
        weights: Floats,
        *,
        seed: int,
        inits: int = 5,
        iterations: int = 100,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.points = points
        self.weights = weights * (len(points) / weights.sum())
        self.done: dict[int, Clustering] = {}
        self._seed = seed
        self._inits = inits
        self._iterations = iterations
        self._progress = progress
        self._distinct = len(np.unique(points[weights > 0], axis=0))
        mean = np.average(points, axis=0, weights=self.weights)
        self._spread = float(self.weights @ ((points - mean) ** 2).sum(axis=1))

    @property
    def most(self) -> int:
        """The greatest k that makes sense: the number of different points."""
        return self._distinct

    def at(self, k: int) -> Clustering:
        """The clustering with `k` clusters. Raises LiveproError where there are fewer different points."""
        if k not in self.done:
            if k > self._distinct:
                raise LiveproError(
                    f"{k} clusters are not possible: of {len(self.points)} intervals "
                    f"{self._distinct} are different.",
                    f"Ask for at most {self._distinct}, or measure with a smaller interval size.",
                )
            if self._progress is not None:
                self._progress(f"clustering {len(self.points):,} intervals, k = {k}")
            self.done[k] = self._cluster(k)
        return self.done[k]

    def _cluster(self, k: int) -> Clustering:
        check_installed()
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        # The order in which threads add up would show in the last digits.
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # points so near that clusters merge: seen in the labels
            found = KMeans(
                n_clusters=k, n_init=self._inits, max_iter=self._iterations, random_state=self._seed
            ).fit(self.points, sample_weight=self.weights)
        first, labels = _in_order(np.asarray(found.labels_, np.int64))
        centroids = np.asarray(found.cluster_centers_, np.float64)[first]
        distance = np.sqrt(((self.points - centroids[labels]) ** 2).sum(axis=1))
        within = float(self.weights @ distance**2)
        sizes = np.bincount(labels, self.weights).astype(np.float64)
        score = information(within, sizes, self.points.shape[1], self._spread)
        return Clustering(len(first), labels, centroids, distance, score)


def information(within: float, sizes: Floats, dimensions: int, spread: float) -> float:
    """The Bayesian information criterion of a clustering, by the formula that X-means and SimPoint use.

    `within` is the sum of squared distances to the centroids, `sizes` the points of each cluster,
    `spread` what `within` is for one cluster. Spherical clusters of one variance; the parameters
    counted are k - 1 weights, k centroids and the variance (D. Pelleg, A. Moore, "X-means", ICML
    2000; Sherwood et al., ASPLOS 2002, section 4.3). The variance is that of a dimension; SimPoint
    leaves the division by D out, which adds the same to every k.
    """
    n = float(sizes.sum())
    k = len(sizes)
    floor = max(spread, np.finfo(np.float64).tiny) / (n * dimensions) * _SMALLEST_SPREAD
    variance = max(within / (dimensions * max(n - k, 1.0)), floor)
    sizes = sizes[sizes > 0]
    likelihood = (
        -n / 2 * math.log(2 * math.pi)
        - n * dimensions / 2 * math.log(variance)
        - (n - k) / 2
        + float((sizes * np.log(sizes / n)).sum())
    )
    return likelihood - (k - 1 + dimensions * k + 1) / 2 * math.log(n)


def smallest_good_k(
    score: Callable[[int], float], most: int, threshold: float, *, every: bool
) -> tuple[int, dict[int, float]]:
    """The smallest k from 1 to `most` whose score reaches `threshold`, and the scores looked at.

    Scores are put between 0 for the least and 1 for the greatest seen. With `every`, all k are looked
    at; otherwise k is found by bisection, as SimPoint 3.0 does (G. Hamerly et al., "SimPoint 3.0:
    Faster and more flexible program phase analysis", JILP 7, 2005, section 4.2).
    """
    seen = {k: score(k) for k in (range(1, most + 1) if every else sorted({1, most}))}

    def good(k: int) -> bool:
        least, greatest = min(seen.values()), max(seen.values())
        return greatest == least or (seen[k] - least) / (greatest - least) >= threshold

    low, high = 1, most  # `low` is not good, or is the answer
    while not every and high - low > 1:
        middle = (low + high) // 2
        seen[middle] = score(middle)
        if good(middle):
            high = middle
        else:
            low = middle
    return min(k for k in seen if good(k)), dict(sorted(seen.items()))


def default_most(intervals: int) -> int:
    """maxK where the user gives none: the square root of the number of intervals, at most 30."""
    return max(1, min(MOST_CLUSTERS, math.isqrt(intervals)))


def _in_order(labels: Ints) -> tuple[Ints, Ints]:
    """The labels that occur, in order of first appearance, and `labels` numbered by that."""
    found, at, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(at, kind="stable")
    rank = np.empty(len(found), np.int64)
    rank[order] = np.arange(len(found))
    return found[order], rank[inverse]


def check_installed() -> None:
    """Raise LiveproError where scikit-learn is missing."""
    try:
        import sklearn.cluster  # noqa: F401
    except ImportError as error:
        raise LiveproError(
            "Clustering needs scikit-learn, which is not installed.", "pip install 'livepro[simpoint]'"
        ) from error
