"""What the tracer makes of errors: whose they are."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from livepro.isa import for_machine
from livepro.linux import proc
from livepro.linux.wait import WALL
from livepro.tracee import TracedThread, Tracer

ISA = for_machine(platform.machine())


class Listening:
    """A listener that lets a thread go at its first stop, and fails then: before that, or behind it."""

    takes_singly = False

    def __init__(self, *, behind: bool, ends: bool) -> None:
        self._behind = behind
        self._ends = ends
        self.tracer = Tracer(ISA.registers, self, follow_children=False)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: None

    def part(self, thread: TracedThread) -> bool:
        if self._behind:
            self.tracer.let_run(thread)
        if self._ends:
            os.kill(thread.tid, signal.SIGKILL)
            while proc.thread_state(thread.tid) not in "ZXt":
                pass
        raise OSError(errno.EMFILE, "too many open files")


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits. What it has answered once is not in the middle of its exec, whose stop
    would be the first to be reported."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"\n")
        assert process.stdout.read(1) == b"\n"
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("behind", "ends", "raised"),
    [(False, False, True), (False, True, False), (True, False, True), (True, True, True)],
)
def test_whose_error_it_is(behind: bool, ends: bool, raised: bool, waiting: subprocess.Popen[bytes]) -> None:
    """A thread that is killed is asked in vain, which is no error. Once it has been let go, what fails has
    been asked of others."""
    listening = Listening(behind=behind, ends=ends)
    tracer = listening.tracer
    tracer.attach(waiting.pid, os.getpid())
    tid, status = os.waitpid(waiting.pid, WALL)
    tracer.dispatch(tid, status)  # taken over
    tracer.leaving = True
    if raised:
        with pytest.raises(OSError, match="too many"):
            tracer.dispatch(tid, status)
    else:
        tracer.dispatch(tid, status)
