"""What the tracer makes of errors: whose they are."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from livepro.isa import for_machine
from livepro.linux import proc, ptrace
from livepro.linux.wait import WALL, is_stop, stop_event
from livepro.tracee import TracedThread, Tracer
from livepro.tracee.taking import BIRTHS

ISA = for_machine(platform.machine())


class Listening:
    """A listener that lets a thread go at its first stop, and fails then: before that, or behind it."""

    takes_singly = False

    def __init__(self, *, behind: bool, ends: bool) -> None:
        self._behind = behind
        self._ends = ends
        self.tracer = Tracer(ISA.registers, self, ISA.syscalls.numbers, follow_children=False)

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


class Running:
    """A listener that lets everything run."""

    takes_singly = False

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: None

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        ptrace.call(ptrace.PTRACE_CONT, thread.tid, 0, number)

    def signalled(self, thread: TracedThread, number: int) -> None:
        self.resume(thread, number)

    def trapped(self, thread: TracedThread) -> None:
        self.resume(thread)


def test_a_number_that_another_one_had_before() -> None:
    """Who is killed as it starts a child tells nobody, and the child's end is all that is heard of it. A
    child with the same number, much later, was taken for that one: it stood still for ever."""
    tracer = Tracer(ISA.registers, Running(), ISA.syscalls.numbers, follow_children=True)
    tracer.launch("/bin/sh", ["sh", "-c", "(exit 7); exit $?"], {}, aslr=True)
    early: dict[int, int] = {}
    told: set[int] = set()
    until = time.monotonic() + 30
    while tracer.root_status is None:
        tid, status = os.waitpid(-1, WALL | os.WNOHANG)
        if not tid:
            assert time.monotonic() < until, "a child stands still"
            continue
        if is_stop(status) and stop_event(status) in BIRTHS:
            child = ptrace.event_message(tid)
            tracer.dispatch(child, 0)  # the former one's end
            tracer.dispatch(tid, status)
            told.add(child)
            if child in early:
                tracer.dispatch(child, early[child])
        elif tid not in (*tracer.tids, *told):
            early[tid] = status  # behind its parent's
        else:
            tracer.dispatch(tid, status)
    assert os.waitstatus_to_exitcode(tracer.root_status) == 7
    assert len(told) == 1


@pytest.mark.parametrize("exiting", [False, True])
def test_a_child_whose_parent_is_killed_before_it_tells(exiting: bool, tmp_path: Path) -> None:
    """Natively the child goes on. It stood still, for its parent's word; and where the parent had come to the
    stop before its end by then, its exit status was taken for a child's number, and waited for."""
    said = tmp_path / "said"
    tracer = Tracer(ISA.registers, Running(), ISA.syscalls.numbers, follow_children=True)
    tracer.launch("/bin/sh", ["sh", "-c", f"(echo alive > {said}); exit 1"], {}, aslr=True)
    root, first, child = tracer.processes[0].pid, 0, 0
    until = time.monotonic() + 30
    while tracer.busy:
        tid, status = os.waitpid(-1, WALL | os.WNOHANG)
        if not tid:
            assert time.monotonic() < until, "a child stands still"
        elif child or (tid == root and stop_event(status) not in BIRTHS):
            tracer.dispatch(tid, status)
        elif tid == root:
            child = ptrace.event_message(tid)
            first = first or os.waitpid(child, WALL)[1]
            os.kill(root, signal.SIGKILL)
            while not proc.dying(root) or (exiting and proc.thread_state(root) != proc.TRACED):
                assert time.monotonic() < until
            tracer.dispatch(tid, status)  # in vain
            tracer.dispatch(child, first)
        else:
            first = status
    assert said.read_text() == "alive\n"
    assert [process.pid for process in tracer.processes] == [root, child]
    assert os.waitstatus_to_exitcode(tracer.root_status or 0) == -signal.SIGKILL
    assert tracer.processes[1].ppid == root


class Late(Running):
    """A listener that asks something of each child when that has been killed just now."""

    def __init__(self) -> None:
        self.root = 0

    def thread_started(self, thread: TracedThread) -> None:
        self.root = self.root or thread.tid
        if thread.tid != self.root:
            os.kill(thread.tid, signal.SIGKILL)
            while not proc.dying(thread.tid):
                pass
            raise ProcessLookupError(f"thread {thread.tid} has ended")


def test_a_child_that_is_killed_before_its_parent_tells() -> None:
    """It has stopped by then, and is asked when its parent does tell: that this is in vain was taken for an
    error of the parent's, and ended the measurement (chromium kills children as it ends)."""
    tracer = Tracer(ISA.registers, Late(), ISA.syscalls.numbers, follow_children=True)
    tracer.launch("/bin/sh", ["sh", "-c", "(exit 7); exit 3"], {}, aslr=True)
    root, told, until = tracer.processes[0].pid, 0, time.monotonic() + 30
    while tracer.busy:
        tid, status = os.waitpid(-1, WALL | os.WNOHANG)
        if not tid:
            assert time.monotonic() < until, "a child stands still"
        elif tid == root and is_stop(status) and stop_event(status) in BIRTHS:
            told = ptrace.event_message(tid)
            tracer.dispatch(told, os.waitpid(told, WALL)[1])
            tracer.dispatch(tid, status)
        else:
            tracer.dispatch(tid, status)
    assert [process.pid for process in tracer.processes] == [root, told]
    assert os.waitstatus_to_exitcode(tracer.root_status or 0) == 3


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
