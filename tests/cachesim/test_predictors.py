"""Branch predictors: compared with twins, with numbers that were worked out, and as users call them."""

from __future__ import annotations

import json
import platform
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from cachesim.predictors_twin import Returns, conditional
from cachesim.test_cachegrind import livepro

from fixtures import ASM_FLAGS, ROOT, Builder
from livepro.cachesim.predictors import predicting
from livepro.cachesim.predictors.predicting import CALL, CONDITIONAL, OTHER, RETURN
from livepro.cachesim.predictors.state import Core


class Branches:
    """Instructions, at multiples of 4 with a shift of 2 (as on AArch64), and what they did."""

    def __init__(self, kind: list[int], done: list[tuple[int, bool, int]], shift: int = 0) -> None:
        count = len(kind)
        self.kind = np.array(kind, np.uint8)
        self.address = (0x401000 + 977 * np.arange(count, dtype=np.int64)) << shift
        self.size = np.full(count, 4, np.int64)
        self.number = np.array([number for number, _, _ in done], np.int64)
        self.taken = np.array([taken for _, taken, _ in done], np.int64)
        self.target = np.array([target for _, _, target in done], np.int64)
        self.shift = shift

    def wrong(self, name: str, pieces: int = 3) -> list[int]:
        """What the compiled predictor gets wrong, by instruction; it sees the branches in pieces."""
        core = Core(None)  # type: ignore[arg-type]
        counts, missed = np.zeros((len(self.kind), 4), np.int64), np.zeros(4, np.int64)
        ends = np.linspace(0, len(self.number), pieces + 1).astype(int).tolist()
        for begin, stop in pairwise(ends):
            core.predict(
                name,
                (self.number, self.taken, self.target, begin, stop),
                (self.kind, self.address, self.size, self.shift),
                (counts, 3, missed),
            )
        assert counts.sum(axis=0).tolist() == missed.tolist()
        return counts[:, 3].tolist()

    def expected(self, name: str) -> list[int]:
        """The same by the twin."""
        twin: Any = Returns() if name == "ras" else conditional()[name]
        out = [0] * len(self.kind)
        for number, taken, target in zip(
            self.number.tolist(), self.taken.tolist(), self.target.tolist(), strict=True
        ):
            kind, address = self.kind[number], int(self.address[number])
            if name != "ras" and kind == CONDITIONAL:
                out[number] += twin.wrong(address >> self.shift, bool(taken))
            elif name == "ras" and kind == CALL:
                twin.call(address + 4)
            elif name == "ras" and kind == RETURN:
                out[number] += twin.wrong(target)
        return out


def drawn(seed: int, count: int) -> list[tuple[int, bool, int]]:
    """Branches with habits: loops, some that follow an earlier one, some that do as they like."""
    rng = np.random.default_rng(seed)
    outcomes = [False] * 200
    done = []
    for n in range(count):
        number = int(rng.integers(0, 24))
        taken = {
            0: n % 7 != 0,
            1: outcomes[-1 - number % 5],
            2: outcomes[-3] != outcomes[-20],
            3: outcomes[-61],
        }.get(number % 5, bool(rng.integers(0, 2)))
        outcomes.append(taken)
        done.append((number, taken, 0))
    return done


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("name", ["bimodal", "gshare", "tage"])
def test_conditional_branches_equal_to_the_twins(name: str, shift: int) -> None:
    kind = [OTHER if number == 23 else CONDITIONAL for number in range(24)]
    for seed in range(3):
        branches = Branches(kind, drawn(seed, 4000), shift)
        assert branches.wrong(name) == branches.expected(name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bimodal", "gshare", "tage"])
def test_equal_to_the_twins_past_the_ageing(name: str) -> None:
    """With more branches than go by until usefulness is halved."""
    branches = Branches([CONDITIONAL] * 24, drawn(7, predicting.AGED + 40000))
    assert branches.wrong(name, 40) == branches.expected(name)


def test_returns_equal_to_the_twin() -> None:
    """Calls deeper than the stack, returns without a call, and some that go elsewhere."""
    rng = np.random.default_rng(1)
    kind = [CALL] * 8 + [RETURN] * 4 + [CONDITIONAL]
    places = Branches(kind, []).address
    done, depth = [], [0]
    for _ in range(5000):
        number = int(rng.integers(0, 13))
        if number < 8:
            depth.append(int(places[number]) + 4)
            done.append((number, True, 1))
        else:
            at = depth.pop() if len(depth) > 1 and rng.integers(0, 10) else 12345
            done.append((number, True, at))
    branches = Branches(kind, done)
    assert branches.wrong("ras") == branches.expected("ras")
    assert 0 < sum(branches.wrong("ras")) < 4 * 5000 / 13


@pytest.mark.parametrize(
    ("outcomes", "wrong"),
    [
        # A counter begins at 1, weakly against: taken once, it is 2, and right from then on.
        ([True] * 10, {"bimodal": 1}),
        ([False] * 10, {"bimodal": 0, "gshare": 0, "tage": 0}),
        # Taken and not by turns: 1 says no (wrong), 2 says yes (wrong), and so on.
        ([True, False] * 20, {"bimodal": 40}),
        # gshare: each of the first 14 meets a history that is new, whose counter says no: wrong for the 7
        # taken ones. Then the history is one of two, both still new: wrong for the taken one.
        ([True, False] * 40, {"gshare": 8}),
    ],
)
def test_numbers_worked_out(outcomes: list[bool], wrong: dict[str, int]) -> None:
    branches = Branches([CONDITIONAL], [(0, taken, 0) for taken in outcomes])
    assert {name: sum(branches.wrong(name)) for name in wrong} == wrong


@pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")
@pytest.mark.parametrize("engine", ["translate", "step"])
def test_a_program(engine: str, builder: Builder, tmp_path: Path) -> None:
    """By the comment of branches.S."""
    program = builder.build(ROOT / "cachegrind" / "branches.S", ASM_FLAGS)
    report = tmp_path / "run.json"
    options = ("--engine", engine, "--predictors", "bimodal,ras", "--interval-size", "100", "--json", report)
    done = livepro("run", *options, "--", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(report.read_text())["analyses"]["predictors"]
    result = told["result"]
    assert result["totals"] == {"Ir": 267, "Bc": 80, "Br": 41, "bimodal_m": 42, "ras_m": 1}
    assert [row[2:] for row in result["branches"]] == [
        [40, 40, 0, 40, 0],
        [40, 40, 0, 2, 0],
        [1, 0, 1, 0, 1],
    ]
    (thread,) = told["intervals"]
    assert {name: sum(n) for name, n in thread["values"].items()} == {
        name: n for name, n in result["totals"].items() if name != "Ir"
    }
    assert "bimodal               42  52.500%" in done.stderr


def test_predictors_have_no_file_by_line(tmp_path: Path) -> None:
    options = ("--predictors", "tage", "--cachegrind-out-file", "out")
    done = livepro("run", *options, "--", "touch", tmp_path / "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert "--cachegrind-out-file is for the simulator" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_an_unknown_predictor(tmp_path: Path) -> None:
    done = livepro("run", "--predictors", "tage,perceptron", "--", "touch", tmp_path / "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert "There is no predictor 'perceptron'" in done.stderr
    assert "bimodal, gshare, tage, ras" in done.stderr
    assert not (tmp_path / "ran").exists()
