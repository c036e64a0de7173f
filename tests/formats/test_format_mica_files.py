"""MICA's files, to the blank."""

from __future__ import annotations

import pytest

from livepro.formats.mica_files import Line, base_of, full, name_of, phases

VALUES = {
    "ilp": (1, 2, 3, 4),
    "ilp_one": (5,),
    "itypes": (1, 2, 3),  # two groups, and other
    "ppm": tuple(range(15)),
    "memstackdist": (9, 8, 1),
    "stride": (4, 5),
    "fullmemstackdist": (9, 8, 1, 0),
}
TWELVE = " ".join(map(str, range(15)))


@pytest.mark.parametrize(
    ("analysis", "plain", "quirks"),
    [
        ("ilp", "12 1 2 3 4\n", "12 1 2 3 4 \n"),
        ("ilp_one", "5\n", " 5\n"),
        ("itypes", "10 12 1 2\n", "10 12 1 2\n "),
        ("ppm", f"{TWELVE}\n", f"{TWELVE}\n "),
        ("stride", "4 5\n", "4 5\n"),
        ("memstackdist", "9 8 1\n", "9 8 1 "),
        (
            "fullmemstackdist",
            "9 8\n1 0\nnumber of instructions: 10\n",
            "9 8\n 1 0\nnumber of instructions: 10\n",
        ),
    ],
)
def test_the_whole_run(analysis: str, plain: str, quirks: str) -> None:
    line = Line(10, 12, VALUES[analysis])
    assert full(analysis, line, quirks=False) == plain
    assert full(analysis, line, quirks=True) == quirks


@pytest.mark.parametrize(
    ("analysis", "plain", "quirks"),
    [
        ("ilp", "10 1 2 3 4\n3 1 2 3 4\n", "12 1 2 3 4\n5 1 2 3 4 \n"),
        ("ilp_one", "10 5\n3 5\n", "10 5\n5 5\n"),
        ("itypes", "10 1 2 3\n3 1 2 3\n", "10 1 2 3\n5 1 2 3\n "),
        ("ppm", f"10 {TWELVE}\n3 {TWELVE}\n", f"10 {TWELVE}\n{TWELVE}\n "),
        ("stride", "10 4 5\n3 4 5\n", "4 5\n4 5\n"),
        ("memstackdist", "10 9 8 1\n3 9 8 1\n", "9 8 1\n9 8 1 "),
        ("fullmemstackdist", "10 9 8 1 0\n3 9 8 1 0\n", "9 8\n 1 0\n9 8\n 1 0\nnumber of instructions: 3\n"),
    ],
)
def test_intervals(analysis: str, plain: str, quirks: str) -> None:
    lines = [Line(10, 12, VALUES[analysis]), Line(3, 5, VALUES[analysis])]
    assert "".join(phases(analysis, lines, 10, quirks=False)) == plain
    assert "".join(phases(analysis, lines, 10, quirks=True)) == quirks


def test_names() -> None:
    assert name_of(base_of("ilp_one", 64), intervals=False, pid=None) == "ilp-win64_full_int_pin.out"
    assert name_of("ppm", intervals=True, pid=7) == "ppm_phases_int_7_pin.out"
