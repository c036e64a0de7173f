"""What the contract suite sees of a run: plain data, read from what observe.py wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

OBSERVE = Path(__file__).with_name("observe.py")
REPOSITORY = OBSERVE.parent.parent.parent
_PATH = f"{REPOSITORY}:{REPOSITORY / 'tests'}"
TIMEOUT = float(os.environ.get("LIVEPRO_TESTS_TIMEOUT", "240"))
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
    timeout: float = TIMEOUT,
    **options: Any,
) -> Observed:
    """Run `command` under `engine`, with `options` for `livepro.run`, its result going
    through the file `output`, within `timeout` seconds. Raises TimeoutExpired, and AssertionError when
    the run left no result."""
    settings = json.dumps({"engine": engine, **options})
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(env or {}), "PYTHONPATH": _PATH}
    arguments = [str(output), settings, *map(str, command)]
    stdout, stderr = _server().run("observe", arguments, stdin, environment, cwd, output.parent, timeout)
    assert output.exists(), stderr.decode(errors="replace")
    return Observed(json.loads(output.read_text()), stdout, stderr)


def converse(
    steps: Sequence[tuple[str, Any]],
    command: Sequence[str | Path],
    output: Path,
    *,
    engine: str,
    **options: Any,
) -> Observed:
    """Run `command` as `observe` does, taking `steps` (see commanded.py) meanwhile."""
    settings = json.dumps({"engine": engine, **options})
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": _PATH}
    arguments = [str(output), settings, json.dumps(steps), *map(str, command)]
    stdout, stderr = _server().run("commanded", arguments, b"", environment, None, output.parent)
    assert output.exists(), stderr.decode(errors="replace")
    return Observed(json.loads(output.read_text()), stdout, stderr)


def regions(arguments: Sequence[str], output: Path, stdin: bytes, timeout: float = TIMEOUT) -> bytes:
    """Run regions.py, whose answers go to the file `output`, within `timeout` seconds; what it and the
    command wrote to standard error. Raises TimeoutExpired."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": _PATH}
    _, stderr = _server().run("regions", arguments, stdin, environment, None, output.parent, timeout)
    return stderr


class _Server:
    """observe.py --serve: one process that has imported everything, and forks for each run."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(OBSERVE), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": _PATH},
        )

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        stdin: bytes,
        environment: Mapping[str, str],
        directory: Path | None,
        folder: Path,
        timeout: float = TIMEOUT,
    ) -> tuple[bytes, bytes]:
        streams = [folder / f"stream{number}" for number in range(3)]
        for path in streams:
            path.write_bytes(stdin if path is streams[0] else b"")
        request = {
            "module": module,
            "arguments": arguments,
            "streams": list(map(str, streams)),
            "environment": environment,
            "directory": directory and str(directory),
            "timeout": timeout,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        if json.loads(self._process.stdout.readline()) is None:
            raise subprocess.TimeoutExpired(list(arguments), timeout)
        return streams[1].read_bytes(), streams[2].read_bytes()


@cache
def _server() -> _Server:
    return _Server()
