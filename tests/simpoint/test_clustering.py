"""k-means, the information criterion, and the search for the number of phases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpoint import synthetic

from livepro.errors import LiveproError
from livepro.simpoint.clustering import Clusterer, default_most, information, smallest_good_k
from livepro.simpoint.points import points, projected, standardised
from livepro.simpoint.vectors import Source


def by_definition(data: np.ndarray, labels: np.ndarray, centroids: np.ndarray) -> float:
    """The criterion cluster by cluster, as ASPLOS 2002 prints it, but for the variance of a dimension."""
    n, d = data.shape
    k = len(centroids)
    variance = sum(math.dist(x, centroids[c]) ** 2 for x, c in zip(data, labels, strict=True)) / (d * (n - k))
    likelihood = 0.0
    for cluster in range(k):
        r = int((labels == cluster).sum())
        likelihood += -r / 2 * math.log(2 * math.pi) - r * d / 2 * math.log(variance)
        likelihood += -(r - 1) / 2 + r * math.log(r / n)
    return likelihood - (k - 1 + d * k + 1) / 2 * math.log(n)


def test_the_score_is_that_of_the_definition() -> None:
    random = np.random.default_rng(5)
    data = np.concatenate([random.normal(5 * n, 1, (20 + n, 4)) for n in range(3)])
    clusterer = Clusterer(data, np.ones(len(data)), seed=1)
    for k in (1, 2, 3, 7):
        found = clusterer.at(k)
        twin = by_definition(data, found.labels, found.centroids)
        assert found.score == pytest.approx(twin, rel=1e-12)  # sums in another order
    assert max((1, 2, 3, 7), key=lambda k: clusterer.at(k).score) == 3


def test_equal_points_do_not_ask_for_more_clusters() -> None:
    """Without any variance the logarithm has none; more clusters only cost parameters then."""
    sizes = np.array([5.0, 5.0])
    assert information(0.0, sizes, 15, 100.0) > information(0.0, np.array([5.0, 3.0, 2.0]), 15, 100.0)
    assert math.isfinite(information(0.0, np.array([10.0]), 15, 0.0))


@given(st.lists(st.integers(0, 4), min_size=8, max_size=60), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_known_phases_are_found(sequence: list[int], seed: int) -> None:
    data = points(synthetic.vectors(sequence), [], 15, seed)
    clusterer = Clusterer(data, np.ones(len(sequence)), seed=seed)
    real = len(set(sequence))
    assert clusterer.most == real
    assert smallest_good_k(lambda k: clusterer.at(k).score, clusterer.most, 0.9, every=True)[0] <= real
    labels = clusterer.at(real).labels.tolist()
    order = list(dict.fromkeys(sequence))  # numbered by first appearance
    assert labels == [order.index(phase) for phase in sequence]


def test_noisy_phases_are_found_among_more() -> None:
    sequence = [0] * 40 + [1] * 25 + [0] * 20 + [2] * 30 + [3] * 12 + [1] * 25
    data = points(synthetic.vectors(sequence, noise=0.1), [], 15, 1)
    clusterer = Clusterer(data, np.ones(len(sequence)), seed=1)
    for every in (False, True):
        k, _ = smallest_good_k(lambda k: clusterer.at(k).score, default_most(len(sequence)), 0.9, every=every)
        assert k == 4
    order = list(dict.fromkeys(sequence))
    assert clusterer.at(4).labels.tolist() == [order.index(phase) for phase in sequence]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.floats(0.01, 1))
def test_bisection_finds_what_looking_at_all_does(rises: list[int], threshold: float) -> None:
    """Where scores only rise, so that the least and the greatest are those of both ends."""
    scores = np.cumsum(rises).astype(float).tolist()
    every, seen = smallest_good_k(lambda k: scores[k - 1], len(scores), threshold, every=True)
    found, looked_at = smallest_good_k(lambda k: scores[k - 1], len(scores), threshold, every=False)
    assert found == every
    assert len(seen) == len(scores)
    assert len(looked_at) <= 2 + math.ceil(math.log2(len(scores)) if len(scores) > 1 else 0)


def test_equal_seeds_give_equal_clusters() -> None:
    data = points(synthetic.vectors([0, 1, 2, 1] * 9, noise=0.3), [], 15, 7)
    one, two = (Clusterer(data, np.ones(36), seed=7).at(5) for _ in range(2))
    assert one.labels.tolist() == two.labels.tolist()
    assert one.score == two.score


def test_more_clusters_than_different_intervals() -> None:
    data = points(synthetic.vectors([0, 1, 0, 1, 0]), [], 15, 1)
    with pytest.raises(LiveproError, match=r"3 clusters are not possible: of 5 intervals 2 are different"):
        Clusterer(data, np.ones(5), seed=1).at(3)


def test_an_interval_weighs_what_its_instructions_do() -> None:
    """Two points at 0, one of weight 3 at 1: the mean of all is 3/5, not 1/3."""
    data = np.array([[0.0], [0.0], [1.0]])
    assert Clusterer(data, np.array([1.0, 1.0, 3.0]), seed=1).at(1).centroids == [[0.6]]


def test_projection_keeps_equal_vectors_equal_whatever_their_length() -> None:
    found = synthetic.vectors([0, 0, 1])
    longer = type(found)("x", found.start, found.column, found.count * 4, found.ids)
    assert (projected(found, 15, 3) == projected(longer, 15, 3)).all()
    assert (projected(found, 15, 3)[0] == projected(found, 15, 3)[1]).all()
    assert (projected(found, 15, 3) != projected(found, 15, 4)).any()
    assert projected(found, 15, 3).shape == (3, 15)
    assert projected(found, 10**6, 3).shape == (3, 81)  # no more than there are blocks


def test_sources_side_by_side_have_the_part_that_their_weights_say() -> None:
    found = synthetic.vectors([0, 1] * 10)
    other = Source("misses", ("l1", "l2"), np.arange(40.0).reshape(20, 2), weight=0.25)
    both = points(found, [other], 15, 1)
    assert both.shape == (20, 17)
    spread = ((both - both.mean(axis=0)) ** 2).mean(axis=0)
    assert spread[:15].sum() == pytest.approx(1)
    assert spread[15:].sum() == pytest.approx(0.25)


def test_a_column_that_never_changes_says_nothing() -> None:
    values = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert standardised(Source("x", ("a", "b"), values)).tolist() == [[-1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("intervals", "most"), [(1, 1), (3, 1), (100, 10), (899, 29), (901, 30), (10**6, 30)]
)
def test_default_of_max_k(intervals: int, most: int) -> None:
    assert default_most(intervals) == most
