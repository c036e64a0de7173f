"""What MICA's analyses tell of each function."""

from __future__ import annotations

import json
import platform
import random
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
if platform.machine() != "x86_64":
    pytest.skip("written for x86-64 programs", allow_module_level=True)

from mica.test_mica_command import fixture, livepro

import livepro as package
from fixtures import Builder
from livepro.events.structures.touched import USED, Touched, distinct, touch
from livepro.mica.model import Mica


@pytest.mark.parametrize("engine", ["translate", "step"])
@pytest.mark.parametrize("analyses", ["memfootprint", "stride", "all"])
def test_what_each_function_touches(engine: str, analyses: str, builder: Builder, tmp_path: Path) -> None:
    """By the comment of functions.S."""
    asked = ("--analyses", analyses, "--engine", engine, "--json", "out.json")
    done = livepro("--no-files", "-q", *asked, "--", str(fixture(builder, "functions")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (process,) = json.loads((tmp_path / "out.json").read_text())["processes"]
    functions = {row["function"]: row for row in process["functions"]}
    assert set(functions) == {"_start", "first", "second"}
    if analyses != "stride":
        assert process["total"]["values"]["memfootprint"] == [6, 3, 3, 1]
        assert functions["first"]["memfootprint"] == [6, 3, 1, 1]
        assert functions["second"]["memfootprint"] == [3, 3, 1, 1]
        assert functions["_start"]["memfootprint"] == [1, 1, 1, 1]
    if analyses != "memfootprint":
        counts = {name: (row["stride"][0], row["stride"][15]) for name, row in functions.items()}
        assert counts == {"_start": (0, 2), "first": (16, 1), "second": (3, 0)}


def test_they_are_a_table(builder: Builder) -> None:
    program = fixture(builder, "functions")
    for analyses in ("memfootprint", "stride+ppm"):
        found = package.run([str(program)], analyses=[Mica(analyses)])
        frames = found.to_pandas()
        rows = frames["mica.functions"].set_index("function")
        if analyses == "memfootprint":
            assert rows.loc["first", "memfootprint: data blocks"] == 6
        else:
            assert rows.loc["first", "stride: reads"] == 16
            assert rows.loc["first", "branches"] == 5


@pytest.mark.parametrize("seed", range(6))
def test_touched_units_are_those_of_sets(seed: int) -> None:
    """Against sets, while the table grows; units of all sizes, negative ones, too."""
    generator = random.Random(seed)
    table, known = Touched(), set()
    places = [generator.randrange(-(1 << 57), 1 << 57) for _ in range(30)]
    for _ in range(20_000):
        unit = generator.choice(places) + generator.randrange(500)
        instruction = generator.randrange(400)
        new = touch(instruction, unit, *table.arrays())
        assert new == ((instruction, unit) not in known)
        known.add((instruction, unit))
        table.grow()
    rows = table.rows
    assert rows is not None
    assert int(table.arrays()[1][USED]) == len(rows)
    owners = rows[:, 1] % 7
    for shift in range(10):
        sets: list[set[int]] = [set() for _ in range(7)]
        for instruction, unit in known:
            sets[instruction % 7].add(unit >> shift)
        assert distinct(rows, owners, shift, 7).tolist() == [len(of) for of in sets]


def test_what_finds_no_room_is_said_to_be_lost() -> None:
    table = Touched()
    arrays = table.arrays()
    rows = len(arrays[0]) // 4
    for group in range(rows // 2):
        assert touch(0, group * 64, *arrays)
        assert not touch(0, group * 64, *arrays)
    assert table.rows is not None
    assert touch(0, rows * 64, *arrays)
    assert touch(0, rows * 64, *arrays)
    assert not touch(0, 0, *arrays)
    assert table.rows is None
    assert distinct(np.zeros((0, 3), np.int64), np.zeros(0, np.int64), 3, 2).tolist() == [0, 0]
