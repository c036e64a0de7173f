"""The files of SimPoint: its choice of intervals, and their weights."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livepro.errors import LiveproError
from livepro.formats import simpoint
from livepro.formats.simpoint import SimPoint, Weight, WeightedPoint

# As SimPoint 3.2 prints them (C++ streams, six significant digits).
POINTS = "345 0\n339 1\n72 3\n"
WEIGHTS = "0.02 0\n0.979961 1\n3.9e-05 3\n"


def test_read_and_written_again(tmp_path: Path) -> None:
    (tmp_path / "p").write_text(POINTS)
    (tmp_path / "w").write_text(WEIGHTS)
    points = simpoint.read_simpoints(str(tmp_path / "p"))
    weights = simpoint.read_weights(str(tmp_path / "w"))
    assert points == [SimPoint(345, 0), SimPoint(339, 1), SimPoint(72, 3)]
    assert weights == [Weight(0.02, 0), Weight(0.979961, 1), Weight(3.9e-05, 3)]
    out = io.StringIO()
    simpoint.write_simpoints(out, points)
    assert out.getvalue() == POINTS
    out = io.StringIO()
    simpoint.write_weights(out, weights)
    assert out.getvalue() == WEIGHTS
    assert simpoint.join(points, weights) == [
        WeightedPoint(72, 3, 3.9e-05),
        WeightedPoint(339, 1, 0.979961),
        WeightedPoint(345, 0, 0.02),
    ]


def test_a_single_cluster_has_weight_one() -> None:
    out = io.StringIO()
    simpoint.write_weights(out, [Weight(1.0, 0)])
    assert out.getvalue() == "1 0\n"


@given(st.floats(0, 1), st.integers(0, 10**6))
def test_weights_keep_every_digit(weight: float, cluster: int) -> None:
    out = io.StringIO()
    simpoint.write_weights(out, [Weight(weight, cluster)])
    number, _, name = out.getvalue().strip().partition(" ")
    assert (float(number), int(name)) == (weight, cluster)


@pytest.mark.parametrize("line", ["5", "1 2 3", "-1 0", "0.5 0", "x 0"])
def test_malformed_points_are_located(tmp_path: Path, line: str) -> None:
    (tmp_path / "p").write_text(f"1 0\n\n{line}\n")
    with pytest.raises(LiveproError, match=r"/p:3: the line "):
        simpoint.read_simpoints(str(tmp_path / "p"))


@pytest.mark.parametrize("line", ["0.5", "1.5 0", "-0.1 0", "nan 0", "x 0", "0.5 a"])
def test_malformed_weights_are_located(tmp_path: Path, line: str) -> None:
    (tmp_path / "w").write_text(f"{line}\n")
    with pytest.raises(LiveproError, match=r"/w:1: the line "):
        simpoint.read_weights(str(tmp_path / "w"))


@pytest.mark.parametrize("weights", [[], [Weight(1.0, 1)], [Weight(0.5, 0), Weight(0.5, 0)]])
def test_files_of_different_runs_are_not_joined(weights: list[Weight]) -> None:
    with pytest.raises(LiveproError, match="do not name the same clusters"):
        simpoint.join([SimPoint(7, 0)], weights)
