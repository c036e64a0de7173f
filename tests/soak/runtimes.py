"""Language runtimes, and what each is to run: fixtures/busy, a busy loop that checks its own work.

They make machine code as they go, or interpret by it, each in its own way. A command's `UNTIL` stands for a
file: once that exists, the program ends, and says how many of its results were wrong.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from attach.targets import Target

from fixtures import ROOT, Builder
from soak.program import Program

UNTIL = "UNTIL"
_BUSY = ROOT / "busy"
_COLLECTORS = {"g1": "G1", "serial": "Serial", "parallel": "Parallel", "shenandoah": "Shenandoah", "z": "Z"}


@dataclass(frozen=True)
class Runtime:
    """How a program is started: its command with what builds it, and the status with which it ends.
    `package` is the Debian package that has the first word of `needs`."""

    command: Callable[[Builder], Sequence[str | Path]]
    needs: str
    package: str
    status: int = 0

    @property
    def present(self) -> bool:
        """Whether it can be had on this machine."""
        return shutil.which(self.needs) is not None


def _java(*options: str) -> Callable[[Builder], Sequence[str | Path]]:
    def command(builder: Builder) -> Sequence[str | Path]:
        place = builder.directory
        if not (place / "Loop.class").exists():
            subprocess.run(["javac", "-d", place, _BUSY / "Loop.java"], check=True)
        return ["java", *options, "-XX:-UsePerfData", "-Xmx256m", "-cp", place, "Loop", UNTIL, "2"]

    return command


def _go(builder: Builder) -> Sequence[str | Path]:
    program = builder.directory / "loop-go"
    if not program.exists():
        home = {"GOCACHE": str(builder.directory / "go"), "HOME": str(builder.directory)}
        subprocess.run(
            ["go", "build", "-o", program, _BUSY / "loop.go"], check=True, env={**os.environ, **home}
        )
    return [program, UNTIL]


def _yjit() -> bool:
    """Whether there is a Ruby that has its compiler."""
    ruby = shutil.which("ruby")
    return bool(ruby) and subprocess.run([ruby, "--yjit", "-e", ""], capture_output=True).returncode == 0


_PHP = ("opcache.enable_cli=1", "opcache.jit=tracing", "opcache.jit_buffer_size=16M")

RUNTIMES: dict[str, Runtime] = {
    "node": Runtime(lambda _: ["node", _BUSY / "loop.js", UNTIL], "node", "nodejs"),
    "node-events": Runtime(lambda _: ["node", _BUSY / "loop.js", UNTIL, "events"], "node", "nodejs"),
    "java-int": Runtime(_java("-Xint"), "javac", "openjdk-17-jdk-headless"),
    **{
        f"java-{short}": Runtime(_java(f"-XX:+Use{long}GC"), "javac", "openjdk-17-jdk-headless")
        for short, long in _COLLECTORS.items()
    },
    "luajit": Runtime(lambda _: ["luajit", _BUSY / "loop.lua", UNTIL], "luajit", "luajit"),
    "php": Runtime(
        lambda _: ["php", *(word for part in _PHP for word in ("-d", part)), _BUSY / "loop.php", UNTIL],
        "php",
        "php-cli",
    ),
    "ruby": Runtime(
        lambda _: ["ruby", *(["--yjit"] if _yjit() else []), _BUSY / "loop.rb", UNTIL], "ruby", "ruby"
    ),
    "cpython": Runtime(lambda _: [sys.executable, _BUSY / "loop.py", UNTIL, "3"], sys.executable, "python3"),
    "pypy": Runtime(lambda _: ["pypy3", _BUSY / "loop.py", UNTIL, "3"], "pypy3", "pypy3"),
    "go": Runtime(_go, "go", "golang-go"),
    "checks": Runtime(lambda builder: [builder.hosted("attach_checks")], "gcc", "gcc", 7),
}
"""By name. `checks` is a C program whose threads check registers, segment bases and signals."""


class Busy(Program):
    """One of them, running."""

    generates = True

    def __init__(self, name: str, builder: Builder) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="livepro-busy-"))
        self._until = self._place / "until"
        self.status = RUNTIMES[name].status
        command = [self._until if word == UNTIL else word for word in RUNTIMES[name].command(builder)]
        super().__init__(Target(*command, cwd=self._place), (self.status, ""))

    def verdict(self, seconds: float) -> str:
        """Have it end; returns how it did: "right", or what was wrong."""
        self._until.touch()
        process = self.target.process
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "hung"
        finally:
            shutil.rmtree(self._place, ignore_errors=True)
        return judge(out, err, process.returncode, self.status)

    def finish(self) -> None:
        verdict = self.verdict(60)
        assert verdict == "right", verdict


def judge(out: str, err: str, status: int | None, right: int) -> str:
    """What a program's last words and its exit status (None: not known) say: "right", or what was wrong.
    `right` is the status that it must end with."""
    if status is not None and status < 0:
        return f"died of signal {-status}: {err[-300:]!r}"
    found = re.search(r"^wrong (\d+) (?:in|of) (\d+)\n\Z", out, re.MULTILINE)
    if found is None:
        return f"ended with {status}: {out[-300:]!r} {err[-300:]!r}"
    if int(found[1]) or status not in (None, right):
        return f"wrong: {found[0].strip()}, status {status}: {err[-300:]!r}"
    return "right"
