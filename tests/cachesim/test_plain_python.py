"""The simulators' loops are the same numbers where nothing is compiled: as plain Python."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fixtures import ROOT, Builder, assembly

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the figures are of x86-64's fixture")


def told(program: Path, directory: Path, options: list[str], *, compiled: bool) -> Any:
    out = directory / f"{compiled}.json"
    command = ["run", "--quiet", "--engine", "step", "--no-aslr", *options, "--json", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "livepro", *command, "--", str(program)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT.parent), "NUMBA_DISABLE_JIT": "0" if compiled else "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {
        name: [process["result"] for process in processes]
        for name, processes in json.loads(out.read_text())["analyses"].items()
    }


@pytest.mark.parametrize(
    "options",
    [
        ["--cachesim", "--branch-sim", "--cachegrind-out-file", os.devnull],
        ["--hierarchy", "zen4"],
        ["--predictors", "bimodal,gshare,tage,ras"],
    ],
    ids=lambda options: options[0],
)
@pytest.mark.parametrize("name", ["accesses", "rep_cmps"])
def test_compiled_and_plain_tell_the_same(
    options: list[str], name: str, builder: Builder, tmp_path: Path
) -> None:
    program = builder.assembly(next(f for f in assembly() if f.name == name))
    compiled, plain = (told(program, tmp_path, options, compiled=compiled) for compiled in (True, False))
    assert compiled == plain
    assert compiled
