from __future__ import annotations

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


def test_distinct(tmp_path: Path) -> None:
    checks.distinct({"--json": "/dev/stdout", "--simd-csv": "/dev/stdout"})
    checks.distinct({"--json": "a", "--simd-csv": "b"})
    said = refused(checks.distinct, {"--json": "a", "--simd-csv": "./a"})
    assert "--json and --simd-csv name the same file" in said
