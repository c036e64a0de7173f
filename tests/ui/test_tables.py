from __future__ import annotations

import pytest
from rich.text import Text

from livepro.ui.tables import Column, Table


def plain(table: Table, width: int, ascii_only: bool = False) -> list[str]:
    return [line.plain for line in table.lines(width, ascii_only)]


def names() -> Table:
    table = Table([Column("n"), Column("first\nname", right=False, flexible=True), Column("end")])
    table.add("1", "a_rather_long_function_name", Text("x", "red"))
    table.add("1,234", "short", "")
    return table


def test_columns_are_as_wide_as_they_need() -> None:
    assert plain(names(), 80) == [
        "         first",
        "      n  name                         end",
        "      1  a_rather_long_function_name    x",
        "  1,234  short",
    ]


def test_flexible_columns_give_way() -> None:
    lines = plain(names(), 30)
    assert lines[2] == "      1  a_rather…on_name" + "    x"
    assert max(map(len, lines)) <= 30
    assert plain(names(), 30, ascii_only=True)[2].isascii()


def test_weights_share_the_space() -> None:
    table = Table([Column("a", flexible=True), Column("b", flexible=True, weight=3)])
    table.add("x" * 50, "y" * 50)
    assert table.widths(44) == [10, 30]


def test_flexible_columns_stay_readable() -> None:
    assert names().widths(5) == [5, 8, 3]


def test_styles_survive() -> None:
    line = names().lines(80)[2]
    assert [span.style for span in line.spans if line.plain[span.start : span.end] == "x"] == ["red"]


def test_rows_must_fit() -> None:
    with pytest.raises(ValueError, match="2 cells for 3 columns"):
        names().add("1", "2")


def test_names_cannot_command_the_terminal() -> None:
    table = Table([Column("name", right=False)])
    table.add("a\x1b[2J\udcff\nb")
    assert [line.plain for line in table.lines(80)][1:] == ["  a\ufffd[2J\ufffd\ufffdb"]
    assert [line.plain for line in table.lines(80, ascii_only=True)][1:] == ["  a?[2J??b"]
