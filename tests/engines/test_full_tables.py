"""Programs, and livepro, that have come to their limit on open files."""

from __future__ import annotations

import ctypes
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures import Builder

_PR_CAPBSET_DROP, _CAP_SYS_RESOURCE = 24, 24  # include/uapi/linux/prctl.h, capability.h
EXPECTED = "44 44 44 44 44 40\n"
"""The sum of the numbers up to 999, modulo 8, of which the last seven bits, by each of five; 40 children."""


def without_privilege() -> None:
    """What is executed next may raise no hard limit."""
    ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_SYS_RESOURCE, 0, 0, 0)


def with_few_files() -> None:
    """What is executed next has a low limit, which it may raise."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def measure(
    program: Path, engine: str, *arguments: str, report: Path, before: Callable[[], None]
) -> tuple[str, dict[str, Any]]:
    """What a program prints under livepro, and livepro's report."""
    command = [sys.executable, "-m", "livepro", "run", "-q", "--engine", engine, "--json", str(report)]
    done = subprocess.run(
        [*command, "--", str(program), *arguments], capture_output=True, text=True, preexec_fn=before
    )
    assert done.returncode == 0, done.stderr
    assert "livepro failed" not in done.stderr
    return done.stdout, json.loads(report.read_text())


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ["translate", "block", "step"])
def test_children_of_a_full_table(builder: Builder, engine: str, tmp_path: Path) -> None:
    """Children of a program that can open no more files run, and are counted: livepro lets it open one more
    for a moment. It may open more itself than it was started with."""
    program = builder.hosted("full_table")
    assert subprocess.run(program, capture_output=True, text=True).stdout == EXPECTED
    printed, report = measure(program, engine, report=tmp_path / "report.json", before=with_few_files)
    assert printed == EXPECTED
    assert not report["warnings"]
    processes = report["processes"]
    assert len(processes) == 1 + 5 + 1 + 1 + 40, "with the grandchild, and the image that one began"
    # (Of the 40 some are killed before they execute anything.)
    assert len([1 for process in processes if process["exit"] == 44 and process["instructions"]]) == 5


def test_where_no_file_may_be_opened_children_run_uncounted(builder: Builder, tmp_path: Path) -> None:
    """Without the privilege to raise a hard limit. One that closes a file and executes something else is
    counted again; its image before is not."""
    program = builder.hosted("full_table")
    printed, report = measure(
        program, "translate", "hard", report=tmp_path / "report.json", before=without_privilege
    )
    assert printed == EXPECTED
    (warning,) = report["warnings"]
    assert "and 45 more ran, but could not be counted" in warning
    assert "Too many open files" in warning
    processes = [process for process in report["processes"] if process["instructions"]]
    assert [process["exit"] for process in processes] == [0, 44]
