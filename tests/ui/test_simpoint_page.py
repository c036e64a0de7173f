"""A study as text: what it says, and that it fits."""

from __future__ import annotations

import io

import pytest
from simpoint import synthetic
from simpoint.test_study import counted

from livepro.simpoint import Options, study
from livepro.ui.simpoint import print_study


def printed(options: Options, width: int, *, plain: bool = False) -> list[str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii" if plain else "utf-8")
    print_study(study(counted(), options=options), out, width)
    out.flush()
    out.seek(0)
    return out.read().splitlines()


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("plain", [False, True])
def test_it_fits(width: int, plain: bool) -> None:
    lines = printed(Options(k=2, seeds=1), width, plain=plain)
    assert max(map(len, lines)) <= width
    assert any("hot 100 %" in line for line in lines)


def test_phases_over_time() -> None:
    """Ten intervals of one, ten of the other, ten of the first again; the first of each is its point."""
    lines = printed(Options(k=2, seeds=0), 100)
    at = next(n for n, line in enumerate(lines) if line.startswith("Phases over time"))
    assert lines[at + 1 : at + 4] == [
        "  0  " + "█" * 10 + " " * 10 + "█" * 10,
        "  1  " + " " * 10 + "█" * 10,
        "     ^         ^",
    ]


def test_weights_are_shown_where_they_are_not_the_shares() -> None:
    def heading(coverage: float) -> str:
        lines = printed(Options(k=2, seeds=0, coverage=coverage), 100)
        return lines[next(n for n, line in enumerate(lines) if line == "Phases") + 1]

    assert "weight" not in heading(1.0)
    assert "weight" in heading(0.6)


def test_many_phases_fit_a_terminal() -> None:
    vectors = synthetic.vectors([n % 29 for n in range(900)], size=10**9)
    out = io.StringIO()
    print_study(study(vectors, options=Options(k=29, seeds=0)), out, 80)
    assert max(map(len, out.getvalue().splitlines())) <= 80
