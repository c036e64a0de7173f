"""One task of a suite: a benchmark built in one variant, run once, its blocks collected.

A task runs in whatever process Dask puts it in; the measured program is run by a livepro of its own, so
that nothing of the two mixes. What a task leaves is a Parquet file and its state beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from livepro.blocks.rows import EXACT


@dataclass(frozen=True)
class Task:
    """All that is needed to do it, anywhere with the same files. `emulator` (empty: none) executes programs
    of another instruction set, and counts their blocks. Where there is a `measured` task the program is not
    executed: its blocks are weighted by the source lines of that one's run (see `weighted`)."""

    name: str
    isa: str
    folder: str
    directory: str
    build: tuple[str, ...]
    program: str
    run: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    working_directory: str
    input: str
    expect: str | None
    method: str
    emulator: str
    own_code_only: bool
    measured: Task | None = None

    @property
    def digest(self) -> str:
        """What tells it from another task."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def table(self) -> Path:
        """Its blocks."""
        return Path(self.folder) / f"{self.name}.parquet"

    @property
    def state(self) -> Path:
        """How it ended."""
        return Path(self.folder) / f"{self.name}.json"


def done(task: Task) -> dict[str, Any] | None:
    """The state of a task that was done before; None where it has yet to be done, or had failed."""
    try:
        state: dict[str, Any] = json.loads(task.state.read_text())
    except (OSError, ValueError):
        return None
    good = state.get("digest") == task.digest and not state.get("failure") and task.table.exists()
    return state if good else None


def perform(task: Task) -> dict[str, Any]:
    """Build, run and collect; the task's state: `failure` is empty when all went well. Nothing is raised."""
    state: dict[str, Any] = {"name": task.name, "isa": task.isa, "digest": task.digest, "failure": ""}
    try:
        Path(task.folder).mkdir(parents=True, exist_ok=True)
        task.table.unlink(missing_ok=True)
        state["failure"] = _unmeasured(task) or _build(task) or _run(task)
        if task.measured is not None and not state["failure"]:
            state["left_out"] = json.loads(_output(task).read_text())
    except (OSError, subprocess.SubprocessError) as error:
        state["failure"] = str(error)
    task.state.write_text(json.dumps(state))
    return state


def _unmeasured(task: Task) -> str:
    if task.measured is None or done(task.measured) is not None:
        return ""
    return f"its run for {task.measured.isa}, whose source lines weigh it, failed"


def _output(task: Task) -> Path:
    return task.table.with_suffix(".out")


def _build(task: Task) -> str:
    if not task.build:
        return ""
    done_ = subprocess.run(task.build, cwd=task.directory, capture_output=True, text=True, check=False)
    if done_.returncode:
        lines = [line for line in done_.stderr.splitlines() if "error" in line] or done_.stderr.splitlines()
        said = lines[0] if lines else f"status {done_.returncode}"
        return f"building failed: {said} ({_by_hand(task.directory, task.build)})"
    return ""


def _run(task: Task) -> str:
    environment = {**os.environ, **dict(task.environment)}
    out = _output(task)
    command = _weighing(task, task.measured) if task.measured else [*_counting(task), *task.run]
    where = Path(task.directory) / task.working_directory
    with (
        open(Path(task.directory) / task.input if task.input else os.devnull, "rb") as stdin,
        out.open("wb") as stdout,
    ):
        done_ = subprocess.run(
            command,
            cwd=where,
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    if done_.returncode:
        said = done_.stderr.decode(errors="replace").strip().splitlines()
        how = f"it ended with status {done_.returncode}{_signal(done_.returncode)}"
        hand = "" if task.measured else f" ({_by_hand(where, task.run)})"
        return f"{how}{': ' + said[-1] if said else ''}{hand}"
    if task.expect is not None and out.read_bytes() != task.expect.encode():
        return f"its output is not what the manifest expects: see {out}"
    if not task.table.exists():
        return "no blocks were collected"
    return ""


def _signal(status: int) -> str:
    """The signal that a shell means by a status."""
    try:
        return f", {signal.Signals(status - 128).name}"
    except ValueError:
        return ""


def _by_hand(where: str | Path, words: Sequence[str]) -> str:
    return f"by hand: cd {shlex.quote(str(where))} && {shlex.join(words)}"


def _weighing(task: Task, measured: Task) -> list[str]:
    weigh = [sys.executable, "-m", "livepro.blocks.suite.weighted"]
    return [*weigh, str(task.table), task.isa, str(measured.table), task.program]


def _counting(task: Task) -> list[str]:
    livepro = [sys.executable, "-m", "livepro", "blocks"]
    own = str(int(task.own_code_only))
    if task.emulator:
        return [sys.executable, "-m", "livepro.blocks.suite.emulated", str(task.table), task.emulator, own]
    module = ["--module", task.program] if task.own_code_only else []
    how = "run" if task.method == EXACT else "sample"
    return [*livepro, how, "-q", *module, "-o", str(task.table), "--"]
