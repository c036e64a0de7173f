"""One command, run to its end: what it took, and what it wrote."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from benchmarks.runners import environment


@dataclass(frozen=True)
class Run:
    """`cpu` and `wall` in seconds. `cpu` is user and system time of the command and of all
    its descendants that were waited for: a tracer's own time is in it. `status` is the exit
    status, negative for a signal's number; `output` the digest of standard output."""

    cpu: float
    wall: float
    status: int
    output: str
    late: bool


def measure(command: Sequence[str], directory: Path, limit: float) -> Run:
    """Run `command` in `directory`, its standard output into a file; end it after `limit` seconds."""
    written = directory / "output"
    with written.open("wb") as output, (directory / "errors").open("wb") as errors:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=directory,
            env=environment(),
            start_new_session=True,
        )
        fired: list[bool] = []

        def end() -> None:
            fired.append(True)
            os.killpg(process.pid, signal.SIGKILL)

        timer = Timer(limit, end)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)  # Popen must not wait for it again
    return Run(
        usage.ru_utime + usage.ru_stime,
        wall,
        process.returncode,
        hashlib.sha256(written.read_bytes()).hexdigest(),
        bool(fired),
    )
