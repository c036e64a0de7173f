"""`livepro blocks FILE` as it is typed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from livepro.cli.main import main


def test_a_table_with_disassembly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blocks", "/usr/bin/gzip", "--top", "3"]) == 0
    out, err = capsys.readouterr()
    assert "/usr/bin/gzip, x86_64," in out
    assert "here the first 3" in out
    assert "have no symbol: .eh_frame tells where they are" in err


def test_files_and_standard_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "loops.csv"
    assert main(["blocks", "/usr/bin/gzip", "--loops-only", "--no-calls", "-o", str(target)]) == 0
    assert f"written to {target}" in capsys.readouterr().out
    rows = list(csv.DictReader(target.open()))
    assert rows
    assert all(row["loop"] and row["call"] == "0" for row in rows)
    assert main(["blocks", "/usr/bin/gzip", "--loops-only", "--no-calls", "--format", "csv"]) == 0
    assert capsys.readouterr().out == target.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no file to cut into blocks"),
        (["rnu"], "Did you mean run?"),
        (["gzip"], "The program of that name is /"),
        (["/etc/passwd"], "no ELF file"),
        (["/usr/bin/gzip", "--symbol", "nothing_like_it"], "no function 'nothing_like_it'"),
        (["/usr/bin/gzip", "-o", "blocks.xyz"], "does not tell the format"),
        (["/usr/bin/gzip", "--format", "uica"], "not for standard output"),
        (["/usr/bin/gzip", "-o", "/nowhere/blocks.csv"], "cannot be written"),
    ],
)
def test_errors_say_what_and_what_to_do(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["blocks", *arguments]) == 2
    assert words in capsys.readouterr().err
