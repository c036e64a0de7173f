"""Java programs give the same results as alone, under every collector of every Java there is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from jvm import jdk

PROGRAMS = (
    *("Deoptimise", "30000", "Faults", "3000", "Safepoints", "2", "ManyThreads", "60"),
    *("Unloading", "6", "Natives", "20", "Collected", "30000", "HttpLoad", "24"),
)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jdk.compile_all(tmp_path_factory.mktemp("classes"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "collector"),
    [("17", "Serial"), ("17", "G1"), ("17", "Shenandoah"), ("25", "Parallel"), ("25", "G1"), ("25", "Z")],
)
def test_as_alone(version: str, collector: str, classes: Path, tmp_path: Path) -> None:
    """Everything that HotSpot finds hard, one after another in one virtual machine."""
    command = jdk.command(version, classes, "Together", *PROGRAMS, options=[f"-XX:+Use{collector}GC"])
    alone = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert alone.returncode == 0, alone.stderr
    run = jdk.count(command, tmp_path / "out")
    assert (run.seen["exit"], run.stdout, run.stderr) == (0, alone.stdout, alone.stderr)
