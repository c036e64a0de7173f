"""Analyses as a command line names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from livepro.errors import LiveproError
from livepro.events.finding import find

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

MINE = """
from livepro.events import Analysis

class Mine(Analysis):
    def __init__(self, depth: int = 1, name: str = "", shape: str | tuple = ""):
        self.given = depth, name, shape
"""


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ("", (1, "", "")),
        (":depth=3", (3, "", "")),
        (":name=3,4,5:depth=2", (2, "3,4,5", "")),
        (":name='3':shape=3,4", (1, "3", (3, 4))),
        (":shape=32K,8", (1, "", "32K,8")),
    ],
)
def test_options(options: str, given: tuple[object, ...], tmp_path: Path) -> None:
    """Python's literals; what is to be a string is one, quoted or not."""
    (tmp_path / "mine.py").write_text(MINE)
    found = find(f"{tmp_path}/mine.py:Mine{options}")[1]
    assert found.given == given  # type: ignore[attr-defined]


def test_a_cache_as_people_write_it() -> None:
    found = find("cachesim:i1=16384,4,64")[1]
    assert found.hierarchy.i1.ways == 4  # type: ignore[attr-defined]


def test_options_that_there_are_not(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    with pytest.raises(LiveproError, match="Its options are depth"):
        find(f"{tmp_path}/mine.py:Mine:deep=3")
