"""The long runs, made short."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program writes x86-64 code")
def test_each_tells_its_figures(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.md"
    command = ("--processes", "12", "--rounds", "6", "--ledger", str(ledger))
    done = subprocess.run(
        [sys.executable, "-m", "tests.endurance", *command], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = ledger.read_text().splitlines()[2:]
    assert [line.split(" | ")[3] for line in rows] == ["translate", "translate"]
    assert "| 12 processes |" in rows[0]
    assert re.search(r"in 6 rounds, the code cache full \d+ times \| \d+ \| \d+ MB, \d+ MB \| - \|$", rows[1])
