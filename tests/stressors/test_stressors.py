"""stress-ng's stressors under livepro: each does what it does natively, and finds nothing wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attach.targets import eventually
from tools import needed

HERE = Path(__file__).resolve().parent
ROUNDS, SECONDS = 20, 2
"""How often a stressor does its work, and for how long at most."""

PATIENCE = 120.0  # seconds
NOW_AND_THEN = ("mutex",)
"""Stressors that fail natively, too, but not each time: 2 of 100 runs, 9 of 100 on one processor."""

WHILE = 30.0  # seconds in which one of those must fail natively as it has failed under livepro
GRACE = 10.0  # seconds until init has collected what ended last: gigabytes are given back meanwhile


def names(file: str) -> list[str]:
    """The stressors that a list has: its words, or the first of each line of the list with reasons."""
    lines = [line for line in (HERE / file).read_text().splitlines() if line and not line.startswith("#")]
    return [line.split()[0] for line in lines] if file == "exceptions.txt" else " ".join(lines).split()


STRESSORS = names("stressors.txt")


def stressed(command: list[str], name: str, directory: Path) -> tuple[int | str, str]:
    """The status that stress-ng ends with, "late" if it does not, and what it says. Nothing of it is left."""
    stress = needed("stress-ng", "stress-ng")
    options = [f"--{name}", "1", f"--{name}-ops", str(ROUNDS), "-t", str(SECONDS), "--verify"]
    process = subprocess.Popen(
        [*command, stress, "--temp-path", str(directory), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    status: int | str
    try:
        said, _ = process.communicate(timeout=PATIENCE)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        status = "late"
    until = time.monotonic() + GRACE
    try:
        while time.monotonic() < until:
            os.killpg(process.pid, 0)
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return status, said
    return "left something", said


@pytest.mark.long
@pytest.mark.parametrize("name", STRESSORS)
def test_as_natively(name: str, tmp_path: Path) -> None:
    """The status is 0, or what it is natively on this machine. (The engines that stop at each block take
    minutes to get into a stressor.)"""
    livepro = [sys.executable, "-m", "livepro", "run", "-q", "--engine", "translate", "--"]
    status, said = stressed(livepro, name, tmp_path)
    if status == 0 and "livepro: " not in said:
        return
    until = time.monotonic() + (WHILE if name in NOW_AND_THEN else 0.0)
    natively, said_natively = stressed([], name, tmp_path)
    while natively != status and time.monotonic() < until:
        natively, said_natively = stressed([], name, tmp_path)
    assert (status, "livepro: " in said) == (natively, False), f"{said}\nnatively:\n{said_natively}"


def test_every_stressor_is_in_one_of_the_lists() -> None:
    """Each that Debian 12's stress-ng has: in the list, or an exception with a reason."""
    stress = needed("stress-ng", "stress-ng")
    version = subprocess.run([stress, "--version"], capture_output=True, text=True).stdout
    there = subprocess.run([stress, "--stressors"], capture_output=True, text=True).stdout.split()
    excepted = names("exceptions.txt")
    assert not set(STRESSORS) & set(excepted)
    if "0.15.06" in version:
        assert sorted([*STRESSORS, *excepted]) == sorted(there)


DOZEN = (
    *("cpu", "fork", "futex", "matrix", "mincore", "mmap"),
    *("pthread", "sigfpe", "sigrt", "sigsegv", "timer", "vecmath"),
)
"""Stressors of threads, processes, signals, mappings and arithmetic."""


@pytest.mark.long
@pytest.mark.parametrize("engine", ["step", "block", "translate"])
@pytest.mark.parametrize("name", DOZEN)
def test_attached_to_in_the_middle(name: str, engine: str, tmp_path: Path) -> None:
    """Each engine watches what a stressor does for a while, and its status is as ever."""
    stress = needed("stress-ng", "stress-ng")
    options = ["--temp-path", str(tmp_path), f"--{name}", "1", "-t", "6", "--verify"]
    with subprocess.Popen(
        [stress, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def stressing() -> str:
            """The process that has given itself the stressor's name."""
            names = {pid: Path(f"/proc/{pid}/comm").read_text() for pid in children.read_text().split()}
            return next((pid for pid, comm in names.items() if comm.startswith("stress-ng-")), "")

        eventually(stressing, "the stressor's process does not begin")
        attach = ["attach", stressing(), "--engine", engine, "--duration", "700ms", "-q", "--no-live"]
        livepro = subprocess.run(
            [sys.executable, "-m", "livepro", *attach, "--json", str(tmp_path / "report.json")],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        said, _ = process.communicate(timeout=PATIENCE)
    assert (livepro.returncode, process.returncode) == (0, 0), livepro.stderr + said
    assert json.loads((tmp_path / "report.json").read_text())["instructions"] > 0
