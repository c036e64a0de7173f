"""Points, weights, proof and stability, on runs whose phases are known."""

from __future__ import annotations

import sys

import model_builders as build
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpoint import synthetic

from livepro.analyses.itypes import itypes
from livepro.analyses.simd import by_set_and_width, thread_rows, total
from livepro.errors import LiveproError
from livepro.formats.simpoint import SimPoint, Weight
from livepro.simpoint import Metric, Options, Source, Vectors, from_rows, of_thread, phases, study
from livepro.simpoint.choosing import choose, from_files
from livepro.simpoint.clustering import Clustering
from livepro.simpoint.document import to_document
from livepro.simpoint.proof import Prover

FEW = Options(seeds=0)


@given(st.lists(st.integers(0, 4), min_size=30, max_size=60))
@settings(max_examples=20, deadline=None)
def test_equal_intervals_are_proved_without_error(sequence: list[int]) -> None:
    """Each phase's intervals are the same, so its point is the phase, and the weighted points the run."""
    kinds = len(set(sequence))
    found = study(synthetic.vectors(sequence), options=Options(k=kinds, seeds=1))
    assert found.proof.profile == pytest.approx(0, abs=1e-12)  # sums of binary fractions
    assert [p.interval for p in found.choice.points] == [sequence.index(p) for p in dict.fromkeys(sequence)]
    assert sum(p.weight for p in found.choice.points) == pytest.approx(1)
    instructions = found.instructions
    for point in found.choice.points:
        member = [n for n, phase in enumerate(sequence) if phase == sequence[point.interval]]
        assert point.weight == pytest.approx(instructions[member].sum() / instructions.sum())
        assert point.intervals == len(member)
        assert point.start == sum(instructions[: point.interval].astype(int).tolist())
    assert [a.agreement for a in found.again] == [1.0]


def test_points_and_weights_have_lines_in_the_same_order() -> None:
    choice = study(synthetic.vectors([2, 1, 1, 0] * 8), options=Options(k=3, seeds=0)).choice
    assert [p.cluster for p in choice.simpoints] == [w.cluster for w in choice.weights]
    assert [p.interval for p in choice.simpoints] == [0, 1, 3]


def clustering(labels: list[int], distance: list[float]) -> Clustering:
    k = max(labels) + 1
    return Clustering(k, np.array(labels), np.zeros((k, 1)), np.array(distance), 0.0)


def test_the_nearest_represents_and_the_earliest_of_equals() -> None:
    same = np.full(5, 100.0)
    chosen = choose(clustering([0, 0, 0, 1, 1], [3, 1, 1, 2, 0]), same, same)
    assert [(p.interval, p.phase, p.weight) for p in chosen.points] == [(1, 0, 0.6), (4, 1, 0.4)]


def test_early_points() -> None:
    """The nearest tenth of ten intervals is one; the nearest half begins with interval 2."""
    same = np.full(10, 100.0)
    found = clustering([0] * 10, [9, 8, 4, 7, 3, 6, 2, 5, 1, 0.0])
    for early, interval in ((0.0, 9), (0.1, 9), (0.2, 8), (0.5, 2), (1.0, 0)):
        assert [p.interval for p in choose(found, same, same, early=early).points] == [interval]


def test_coverage_keeps_the_heaviest_and_their_weights_sum_to_one() -> None:
    same = np.full(10, 100.0)
    found = clustering([0, 1, 1, 1, 2, 2, 2, 2, 2, 2], [0.0] * 10)
    kept = choose(found, same, same, coverage=0.9)
    assert [(p.phase, p.weight) for p in kept.points] == [(1, 3 / 9), (2, 6 / 9)]
    assert kept.coverage == 0.9
    assert len(choose(found, same, same, coverage=0.91).points) == 3
    assert len(choose(found, same, same).points) == 3


def test_a_short_interval_does_not_represent_long_ones() -> None:
    """The last interval of a run may have an instruction only."""
    lengths = np.array([100.0, 100.0, 100.0, 1.0])
    found = choose(clustering([0] * 4, [1, 0.5, 2, 0]), lengths, lengths)
    assert [p.interval for p in found.points] == [1]


def test_intervals_of_variable_length_count_by_their_instructions() -> None:
    rows = [(np.array([n % 2]), np.array([10 ** (1 + n % 2)], np.uint64)) for n in range(10)]
    vectors = from_rows(rows, "x")
    by_length = study(vectors, options=Options(k=2, seeds=0)).choice
    alike = study(vectors, options=Options(k=2, seeds=0, fixed_length=True)).choice
    assert [p.weight for p in by_length.points] == [50 / 550, 500 / 550]
    assert [p.weight for p in alike.points] == [0.5, 0.5]


def test_an_empty_interval_has_no_part() -> None:
    none = (np.zeros(0, np.int64), np.zeros(0, np.uint64))
    one = (np.array([7]), np.array([5], np.uint64))
    for fixed in (False, True):
        options = Options(k=1, seeds=0, fixed_length=fixed)
        found = study(from_rows([none, one, one], "x"), options=options)
        assert [(p.interval, p.weight) for p in found.choice.points] == [(1, 1.0)]
    with pytest.raises(LiveproError, match="No interval has an instruction"):
        study(from_rows([none], "x"))


BLOCKS = build.table(
    (0x1000, (build.ADD, build.simd("ADDPS"), build.JNZ, build.NOP), "hot", "/bin/prog"),
    (0x2000, (build.ADD, build.JNZ), "cold", "/bin/prog"),
    (0x3000, (build.NOP,), "", "/lib/libc.so.6"),
)


def counted() -> Vectors:
    """30 intervals of 40 instructions: 20 in the first block, 10 in the second with three in the third."""
    hot, cold = build.interval({0: 40}), build.interval({1: 37, 2: 3})
    intervals = [hot] * 10 + [cold] * 10 + [hot] * 10
    # 370 instructions in blocks of two: the last one of them left early.
    thread = build.thread([200, 184, 30], [(1, 1, 2)], intervals=intervals)
    return of_thread(BLOCKS, thread)


def test_metrics_of_a_counted_thread_are_those_of_the_analyses() -> None:
    thread = build.thread([200, 184, 30], [(1, 1, 2), (0, 3, 1)])
    blocks = of_thread(BLOCKS, thread).blocks
    assert blocks is not None
    totals = dict(zip(blocks.metrics, blocks.totals, strict=True))
    groups = itypes(BLOCKS, thread)
    assert {m.name: n for m, n in totals.items() if m.group == "type"} == groups
    rows = thread_rows(BLOCKS, thread)
    assert totals[Metric("SIMD", "SIMD")] == total(rows) == 201
    widths = {f"{key.set} {key.width}": n for key, n in by_set_and_width(rows).items()}
    assert {m.name: n for m, n in totals.items() if m.group == "SIMD set"} == widths
    density = dict(zip(blocks.metrics, blocks.density[0].tolist(), strict=True))
    assert density[Metric("control", "type")] == 0.25
    assert density[Metric("SIMD", "SIMD")] == 0.25


def test_proof_by_hand() -> None:
    """Two phases; estimated from the first alone, all instructions would be in the first block."""
    vectors = counted()
    prover = Prover(vectors, (), vectors.instructions)
    whole = {e.metric.name: e for e in prover.prove([(0, 1.0)]).errors}
    assert whole["SIMD"].estimate == 250
    assert whole["SIMD"].whole == 1000 * 200 / 1200
    assert whole["SIMD"].relative == pytest.approx(0.5)
    assert prover.prove([(0, 1.0)]).profile == pytest.approx(1 / 3)
    both = prover.prove([(0, 2.0), (10, 1.0)])
    assert both.profile == pytest.approx(0, abs=1e-12)
    simd = next(e for e in both.errors if e.metric.name == "SIMD")
    assert simd.estimate == pytest.approx(simd.whole)


def test_rare_metrics_do_not_decide() -> None:
    source = Source(
        "x", ("rare", "common"), np.array([[1.0, 100], [3, 100], [0, 130]]), np.full(3, 1000.0), True
    )
    proof = Prover(None, [source.rates(None)], np.full(3, 1000.0)).prove([(1, 1.0)])
    assert [e.decides for e in proof.errors] == [False, True]
    assert proof.worst is not None
    assert proof.worst.metric.name == "common"
    assert proof.error == pytest.approx(1 - 100 / 110)


def test_a_metric_that_the_run_has_none_of() -> None:
    source = Source("x", ("never",), np.zeros((3, 1)))
    proof = Prover(None, [source], np.ones(3)).prove([(1, 1.0)])
    assert proof.error == 0.0


def test_phases_say_where_and_what() -> None:
    found = study(counted(), options=Options(k=2, seeds=0))
    one, two = phases(found)
    assert (one.share, one.intervals, one.interval) == (2 / 3, 20, 0)
    assert one.functions == (("hot", 1.0),)
    assert (one.simd, dict(one.types)) == (250.0, {"arithmetic": 250, "sse": 250, "control": 250, "nop": 250})
    assert two.functions == (("cold", 37 / 40), ("libc.so.6+0x3000", 3 / 40))
    assert (two.simd, two.interval) == (0.0, 10)


def test_max_error_takes_the_smallest_k_that_holds_it() -> None:
    vectors = synthetic.vectors([0] * 30 + [1] * 20 + [2] * 10 + [3] * 5, noise=0.05)
    whole = study(vectors, options=Options(every=True, most=8, seeds=0))
    errors = {t.k: t.proof.error for t in whole.tried}
    for limit in (0.5, 0.1, 0.03):
        smallest = min(k for k, error in errors.items() if error <= limit)
        found = study(vectors, options=Options(max_error=limit, most=8, seeds=0))
        assert found.choice.k == smallest
        assert found.proof.error <= limit
    with pytest.raises(LiveproError, match=r"No choice of up to 2 phases holds an error of 0\.1 %"):
        study(vectors, options=Options(max_error=0.001, most=2, seeds=0))


def test_other_seeds_see_whether_phases_are_there_at_all() -> None:
    clear = study(synthetic.vectors([0, 1, 2] * 20, noise=0.02), options=Options(k=3))
    assert [a.agreement for a in clear.again] == [1.0] * 4
    assert [a.k for a in clear.again] == [3] * 4
    noise = np.random.default_rng(3).integers(1, 100, (90, 50)).astype(np.uint64)
    blurred = study(from_rows([(np.arange(50), row) for row in noise], "noise"), options=Options(k=6))
    assert max(a.agreement for a in blurred.again) < 0.9


def test_the_same_seed_gives_the_same_study() -> None:
    vectors = synthetic.vectors([0, 1, 2, 1] * 15, noise=0.2)
    assert to_document(study(vectors)) == to_document(study(vectors))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (Options(k=7), "7 clusters are not possible: of 6 intervals 2 are different"),
        (Options(most=7), "Up to 7 phases are not possible with 6 intervals"),
    ],
)
def test_more_phases_than_intervals(options: Options, says: str) -> None:
    with pytest.raises(LiveproError, match=says):
        study(synthetic.vectors([0, 1] * 3), options=options)


def test_sources_of_another_length() -> None:
    other = Source("other.out", ("x",), np.zeros((5, 1)))
    with pytest.raises(LiveproError, match=r"synthetic has 6 intervals, other\.out has 5"):
        study(synthetic.vectors([0, 1] * 3), [other])


def test_a_source_without_weight_is_only_proved() -> None:
    """The points are those without it; what is rare for others decides."""
    vectors = synthetic.vectors([0, 1, 2] * 5, noise=0.1)
    values = np.array([[n % 4 + 1.0, 0.001] for n in range(15)])
    instructions = vectors.instructions
    measured = Source("simulated", ("misses", "rare"), values, instructions, True, 0.0, 1.0)
    options = Options(k=3, seeds=0)
    without = study(vectors, options=options)
    found = study(vectors, [measured], options)
    assert found.choice.points == without.choice.points
    errors = {error.metric.name: error for error in found.proof.errors}
    assert errors["misses"].decides
    assert not errors["rare"].decides
    assert errors["misses"].whole == pytest.approx(1000 * values[:, 0].sum() / instructions.sum())


def test_a_source_alone() -> None:
    values = np.array([[0.0, 1.0]] * 10 + [[5.0, 2.0]] * 10)
    found = study(None, [Source("table", ("a", "b"), values)], Options(k=2, seeds=0))
    assert [(p.interval, p.weight) for p in found.choice.points] == [(0, 0.5), (10, 0.5)]
    assert found.proof.error == pytest.approx(0, abs=1e-12)
    assert found.proof.profile is None


@pytest.mark.parametrize(
    ("points", "weights", "says"),
    [
        ([(9, 0)], [(1.0, 0)], r"p:1: the point is interval 9, the run has only 5 \(0 to 4\)"),
        ([(1, 0), (2, 1)], [(0.5, 1), (0.5, 0)], "w:1: the weight is of cluster 1, line 1 of p"),
        ([(1, 0), (2, 1)], [(0.5, 0)], "p has 2 points, w has 1 weights"),
        ([], [], "p has no point"),
    ],
)
def test_a_choice_that_does_not_fit(
    points: list[tuple[int, int]], weights: list[tuple[float, int]], says: str
) -> None:
    with pytest.raises(LiveproError, match=says):
        from_files([SimPoint(*p) for p in points], [Weight(*w) for w in weights], ("p", "w"), 5)


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(LiveproError, match=r"pip install 'livepro\[simpoint\]'"):
        study(synthetic.vectors([0, 1] * 3), options=FEW)
