"""Processes to attach to, and what may not have changed in them afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from livepro.isa import for_machine
from livepro.linux import proc, ptrace
from livepro.tracee.seize import caught

TIMEOUT = float(os.environ.get("LIVEPRO_TESTS_TIMEOUT", "60"))
"""Seconds after which something counts as hung."""
ROOT = Path(__file__).resolve().parents[2]


def eventually(condition: Callable[[], object], what: str = "") -> None:
    """Wait until a condition holds. Raises AssertionError when it does not in time."""
    until = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < until, what or "it does not happen"
        time.sleep(0.01)


class Target:
    """A program started for a test; `ready` is its first line. Killed at the end of a `with`."""

    def __init__(self, *command: str | Path, **options: Any) -> None:
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.pid = self.process.pid
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str, str]:
        """Tell it to end; returns its status and what it wrote."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, out, err

    @property
    def state(self) -> str:
        """Its state letter."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    @property
    def ticks(self) -> int:
        """The processor time that it has taken, in clock ticks (proc_pid_stat(5))."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def wait_for_state(self, letter: str) -> None:
        """Wait until it is in a state."""
        eventually(lambda: self.state == letter, f"it does not get to state {letter}")

    def tracers(self) -> dict[int, int]:
        """Who traces its threads (0: nobody)."""
        found = {}
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                text = (task / "status").read_text()
                found[int(task.name)] = int(text.partition("TracerPid:")[2].split()[0])
        return found

    @property
    def pc(self) -> int:
        """Where it is, while it is stopped outside system calls (proc_pid_syscall(5))."""
        return int(Path(f"/proc/{self.pid}/syscall").read_text().split()[-1], 16)

    def word(self, address: int) -> int:
        """The 64-bit word at an address of its memory."""
        with open(f"/proc/{self.pid}/mem", "rb") as memory:
            memory.seek(address)
            return int.from_bytes(memory.read(8), "little")

    def shape(self) -> dict[str, Any]:
        """All that livepro may not leave changed: mappings, descriptors, code, tracer, signals."""
        maps = Path(f"/proc/{self.pid}/maps").read_text()
        text = hashlib.sha256()
        with open(f"/proc/{self.pid}/mem", "rb") as memory:
            for start, end, name in re.findall(r"^(\w+)-(\w+) r-xp .*?(\S*)$", maps, re.MULTILINE):
                if name != "[vsyscall]":
                    memory.seek(int(start, 16))
                    text.update(memory.read(int(end, 16) - int(start, 16)))
        status = Path(f"/proc/{self.pid}/status").read_text()
        kept = re.findall(r"^(?:TracerPid|Sig(?:Ign|Cgt)):.*$", status, re.MULTILINE)
        # Stacks and heaps that the program itself maps come and go.
        return {
            "maps": [line for line in maps.splitlines() if " r-xp " in line or "memfd:" in line],
            "descriptors": sorted(os.listdir(f"/proc/{self.pid}/fd")),
            "text": text.hexdigest(),
            "status": kept,
        }


def segment_bases(pid: int) -> dict[int, int]:
    """The gs segment base of each thread of an x86-64 process, for which each is stopped for a moment."""
    bases = {}
    if platform.machine() == "x86_64":
        isa = for_machine("x86_64")
        for tid in proc.threads(pid):
            with contextlib.suppress(OSError), caught(tid):  # but those that have ended
                registers = ptrace.get_registers(tid, isa.registers.structure)
                bases[tid] = int(registers.gs_base)
                if isa.restart_call(registers):  # that this has interrupted
                    ptrace.set_registers(tid, registers)
    return bases


def command_line(*arguments: str | Path | int, **options: Any) -> subprocess.Popen[str]:
    """`livepro attach ARGUMENTS` on its way."""
    return subprocess.Popen(
        [sys.executable, "-m", "livepro", "attach", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **{"env": {**os.environ, "PYTHONPATH": str(ROOT)}, **options},
    )


def wait_until_traced(target: Target) -> None:
    """Wait until a target has a tracer and runs under it."""
    eventually(lambda: proc.tracer(target.pid), "nobody attaches")
    time.sleep(0.2)
