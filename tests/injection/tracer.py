"""Runs `livepro attach` in processes of its own, with a hook in them.

They are forked from here, where livepro's modules have been loaded once; but for that they are what a
shell would start. What they leave behind (a tracer whose front has been killed) becomes this process's child.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process with threads is none to fork

from injection.faults import Fault, Point
from injection.hook import Hook, Library
from livepro.linux.wait import shell_status

_TELL = signal.SIGRTMIN + 1  # has a process write down where its threads are
_PR_SET_CHILD_SUBREAPER = 36  # include/uapi/linux/prctl.h


@dataclass(frozen=True)
class Ended:
    """How one attachment went: livepro's exit status as a shell has it (None: it had to be killed), what
    it said, whether the fault was made, and what was counted where there was none."""

    status: int | None
    errors: str
    made: bool
    counted: Counter[Point]


class Tracers:
    """Starts them one after the other. `place` is for what they write."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._library = Library()
        self._library.replace()
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        # What an attachment needs, loaded once.
        import livepro.api
        import livepro.attachment
        import livepro.cli.attach
        import livepro.cli.outputs
        import livepro.engines.block
        import livepro.engines.step.engine
        import livepro.engines.translate.engine
        import livepro.engines.translate.translator.x86_64
        import livepro.serving  # noqa: F401

    def attach(
        self, pid: int, arguments: Sequence[str], fault: Fault | None, kept: Path, patience: float
    ) -> Ended:
        """`livepro attach PID ARGUMENTS`, with a fault or counted; `kept` is its LIVEPRO_CACHE_DIR."""
        told, found = self._place / "told", self._place / "found"
        for path in (told, found):
            path.unlink(missing_ok=True)
        front = os.fork()
        if front == 0:
            self._become(["attach", str(pid), *arguments], fault, kept, told, found)
        status = self._wait(front, patience)
        errors = told.read_text(errors="replace") if told.exists() else ""
        counted: Counter[Point] = Counter()
        if found.exists():
            for name, phase, number in json.loads(found.read_text()):
                counted[Point(name, phase)] = number
        return Ended(status, errors, "[injected: " in errors, counted)

    def _become(self, command: list[str], fault: Fault | None, kept: Path, told: Path, found: Path) -> None:
        """The child: never returns."""
        try:
            os.setsid()
            os.environ.update(LIVEPRO_CACHE_DIR=str(kept), LIVEPRO_DEBUG="1")
            file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(0, 1)
            os.dup2(file, 2)
            sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
            faulthandler.register(_TELL, file=2)  # all threads
            hook = self._library.hook = Hook(fault)
            started = os.getpid()
            hook.install()
            from livepro.__main__ import main

            status = main(command)
            sys.setprofile(None)
            sys.stderr.flush()
            if fault is None and os.getpid() != started:
                counted = [[p.name, p.phase, number] for p, number in hook.counted.items()]
                found.write_text(json.dumps(counted))
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            status = 99
        os._exit(status)

    @staticmethod
    def _wait(front: int, patience: float) -> int | None:
        """Until it and all that it has started have ended: its exit status as a shell has it. After
        `patience` seconds they are killed, and the answer is None."""
        until = time.monotonic() + patience
        found: int | None = None
        while found is None or _children():
            for child in {front, *_children()} if found is None else _children():
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid == front:
                    found = shell_status(status)
            if time.monotonic() > until:
                for late in [other for child in _children() for other in (child, *_of(child))]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(late, _TELL)
                time.sleep(0.5)
                for child in {front, *_children()} if found is None else _children():
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                return None
            time.sleep(0.002)
        return found


def _children() -> list[int]:
    """This process's children, adopted ones too, that are livepro's: those of other sessions."""
    out = []
    for child in _of(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(child) != os.getsid(0):
                out.append(child)
    return out


def _of(pid: int) -> list[int]:
    """The children of a process's first thread."""
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
