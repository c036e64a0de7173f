"""The programs that are attached to while livepro fails: each checks its own work and says so at its end."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fixtures import ROOT, Builder

BUSY = ROOT / "busy"


class Program:
    """A program that runs; it is told to end by a file's coming into being, or by the end of its input."""

    def __init__(self, command: Sequence[str | Path], status: int, settle: float) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="livepro-injection-"))
        self._until = self._place / "until"
        self._status = status
        self.process = subprocess.Popen(
            [str(self._until) if word == "UNTIL" else str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._place,
        )
        self.pid = self.process.pid
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        time.sleep(settle)

    def verdict(self, seconds: float) -> str:
        """Have it end; returns how it did: "right", or what was wrong."""
        self._until.touch()
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return "hung"
        finally:
            shutil.rmtree(self._place, ignore_errors=True)
        status = self.process.returncode
        if status < 0:
            return f"died of signal {-status}"
        found = re.fullmatch(r"wrong (\d+) (?:in|of) \d+\n", out)
        if found is None:
            return f"ended with {status}, saying {out[-200:]!r} {err[-200:]!r}"
        if int(found[1]) or status != self._status:
            return f"wrong: {out.strip()}, status {status}, {err[-300:]!r}"
        return "right"


def threads(builder: Builder) -> Program:
    """fixtures/c/attach_checks.c"""
    return Program([builder.hosted("attach_checks")], 7, 0.01)


def node(builder: Builder) -> Program:
    """A busy loop under V8."""
    return Program(["node", BUSY / "loop.js", "UNTIL"], 0, 0.3)


def python(builder: Builder) -> Program:
    """Threads of CPython."""
    return Program([sys.executable, BUSY / "loop.py", "UNTIL", "3"], 0, 0.1)


def java(builder: Builder) -> Program:
    """Threads of a Java virtual machine."""
    place = builder.directory
    if not (place / "Loop.class").exists():
        subprocess.run(["javac", "-d", place, BUSY / "Loop.java"], check=True)
    return Program(["java", "-Xmx256m", "-cp", place, "Loop", "UNTIL", "2"], 0, 0.6)


TARGETS: dict[str, Callable[[Builder], Program]] = {
    "threads": threads,
    "node": node,
    "python": python,
    "java": java,
}
"""By name, what starts them with what builds them."""
NEEDS = {"threads": "gcc", "node": "node", "python": sys.executable, "java": "javac"}
"""By name, the command without which a target cannot be had."""
