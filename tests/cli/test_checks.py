from __future__ import annotations

import os
from pathlib import Path

import pytest

from livepro.cli import checks
from livepro.errors import LiveproError


def refused(call: object, *args: object) -> str:
    with pytest.raises(LiveproError) as error:
        call(*args)  # type: ignore[operator]
    assert error.value.status == 2
    assert error.value.remedy
    return str(error.value)


def test_command() -> None:
    assert checks.command(["--", "ls", "--", "-l"]) == ("ls", "--", "-l")
    assert checks.command(["ls"]) == ("ls",)
    for words in ([], ["--"], [""], ["--", ""]):
        assert "no command to run" in refused(checks.command, words)


def test_output_file_leaves_things_as_they_are(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("kept")
    assert checks.output_file(str(old), "--json") == str(old)
    assert old.read_text() == "kept"
    checks.output_file(str(tmp_path / "new"), "--json")
    assert os.listdir(tmp_path) == ["old"]


def test_output_file_that_cannot_be_written(tmp_path: Path) -> None:
    """/proc refuses new files even to root, whatever its permission bits say."""
    for name in ("", str(tmp_path), f"{tmp_path}/none/x", f"{tmp_path}/x/", "/proc/livepro.json"):
        assert "--json" in refused(checks.output_file, name, "--json")


def test_distinct(tmp_path: Path) -> None:
    checks.distinct({"--json": "/dev/stdout", "--simd-csv": "/dev/stdout"})
    checks.distinct({"--json": "a", "--simd-csv": "b"})
    said = refused(checks.distinct, {"--json": "a", "--simd-csv": "./a"})
    assert "--json and --simd-csv name the same file" in said
