"""What the contract suite sees of a run: plain data, read from what observe.py wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OBSERVE = Path(__file__).with_name("observe.py")
REPOSITORY = OBSERVE.parent.parent.parent
TIMEOUT = 60.0
"""Seconds after which a run counts as hung; the longest takes about 10 on a busy machine."""


@dataclass(frozen=True)
class Observed:
    """A run under an engine: `result` as observe.py describes it, the program's output."""

    result: dict[str, Any]
    stdout: bytes
    stderr: bytes

    @property
    def processes(self) -> list[dict[str, Any]]:
        return list(self.result["processes"])

    @property
    def threads(self) -> list[dict[str, Any]]:
        """The threads of all process images."""
        return [thread for process in self.processes for thread in process["threads"]]

    @property
    def faults(self) -> list[str]:
        """What contradicts itself in the result."""
        return [
            fault
            for process in self.processes
            for fault in process["faults"] + [f for t in process["threads"] for f in t["faults"]]
        ]

    def total(self, field: str) -> int:
        """The sum of a field over all threads."""
        return sum(thread[field] for thread in self.threads)


def observe(
    command: Sequence[str | Path],
    output: Path,
    *,
    engine: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    **options: Any,
) -> Observed:
    """Run `command` under `engine`, with `options` for `livepro.run`, its result going
    through the file `output`. Raises TimeoutExpired, and AssertionError when the run
    left no result."""
    settings = json.dumps({"engine": engine, **options})
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(env or {}), "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-B", str(OBSERVE), str(output), settings, *map(str, command)],
        input=stdin,
        capture_output=True,
        env=environment,
        cwd=cwd,
        timeout=TIMEOUT,
    )
    assert output.exists(), done.stderr.decode(errors="replace")
    return Observed(json.loads(output.read_text()), done.stdout, done.stderr)
