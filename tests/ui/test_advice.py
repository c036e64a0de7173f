"""What the summary says where much was executed in code without names."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest
from tools import needed

import livepro
from livepro.ui.summary import print_summary

SOURCE = Path(__file__).parents[2] / "fixtures/names/jit.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("advice") / "python3.12"
    subprocess.run([needed("cc", "gcc"), "-O1", "-o", str(out), str(SOURCE)], check=True)
    return out


def summary(command: list[str]) -> str:
    result = livepro.run(command)
    out = io.StringIO()
    print_summary(result, out, 120)
    Path(f"/tmp/perf-{result.processes[0].pid}.map").unlink(missing_ok=True)
    return out.getvalue()


def test_code_without_names_is_told_of_with_the_way_to_have_them(program: Path, tmp_path: Path) -> None:
    text = summary([str(program), "none", os.fspath(tmp_path)])
    assert "was executed in code that was made meanwhile and has no name." in text
    assert "python3.12 names it when it is told to (python3 -X perf, from 3.12 on)." in text


def test_named_code_needs_no_advice(program: Path, tmp_path: Path) -> None:
    assert "has no name" not in summary([str(program), "map", os.fspath(tmp_path)])
