"""MICA's instruction-type files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from livepro.errors import LiveproError
from livepro.formats import mica


def test_full_run_is_one_line(tmp_path: Path) -> None:
    out = io.StringIO()
    mica.write_full(out, 100, [30, 20, 10, 40, 0, 5, 6, 0, 0, 7, 1, 12])
    assert out.getvalue() == "100 30 20 10 40 0 5 6 0 0 7 1 12\n"
    file = tmp_path / mica.FULL
    file.write_text(out.getvalue())
    assert mica.read_full(str(file)) == (100, (30, 20, 10, 40, 0, 5, 6, 0, 0, 7, 1, 12))


def test_other_categories_are_a_line_each() -> None:
    out = io.StringIO()
    mica.write_other_categories(out, ["SETCC", "AVX2"])
    assert out.getvalue() == "SETCC\nAVX2\n"


def test_names_are_those_of_mica() -> None:
    assert (mica.FULL, mica.OTHER_CATEGORIES) == (
        "itypes_full_int_pin.out",
        "itypes_other_group_categories.txt",
    )


@pytest.mark.parametrize("text", ["", "\n", "5\n", "5 x\n", "5 6\n7 8\n", "5 -6\n", "5  6\n", "5 \u00b2\n"])
def test_anything_else_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "full"
    file.write_text(text)
    with pytest.raises(LiveproError, match="not one line of numbers"):
        mica.read_full(str(file))
