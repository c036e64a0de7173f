"""What the tracer is told first."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from livepro.linux import proc, ptrace
from livepro.linux.wait import WALL
from livepro.tracee.stops import ROUND, next_in_turn, next_stop


@pytest.fixture(autouse=True)
def _no_others() -> None:
    """Children that other tests have left would be named, too."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def test_some_go_first_each_time_others() -> None:
    children = [subprocess.Popen(["true"]) for _ in range(3)]
    pids = [child.pid for child in children]
    for pid in pids:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        # The kernel would name them in their order.
        assert next_in_turn(pids[1:2], 0) == (pids[1], 0)
        assert next_in_turn((), 0) == (pids[0], 0)
        assert next_in_turn(pids, 0) == (pids[2], 0)
    finally:
        for child in children:
            child.returncode = 0  # it has been waited for


def test_each_is_the_first_in_its_turn() -> None:
    """However many there are, and however often the others stop."""
    for count in (2, 4, ROUND):
        children = [subprocess.Popen(["true"]) for _ in range(count)]
        pids = [child.pid for child in children]
        for pid in pids:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        try:
            for turn, pid in enumerate(pids):
                assert next_in_turn(pids, turn * ROUND) == (pid, 0)
        finally:
            for child in children:
                child.returncode = 0


OUTLIVED = """
import os, sys, threading
def end():
    sys.stdin.read(1)
    os._exit(0)
threading.Thread(target=end).start()
print("ready", flush=True)
threading.Event().wait()
"""


def test_a_first_thread_that_ends_before_others_is_not_waited_for() -> None:
    """It is made to go on while it stands still as it exits, and nobody has been told of that yet: the kernel
    tells of its end when the other's has been told, for which nobody would ask. (So it was with a renderer of
    chromium's that exited while it was to make a call.)"""
    with subprocess.Popen(
        [sys.executable, "-c", OUTLIVED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        first = child.pid
        tids = sorted(map(int, os.listdir(f"/proc/{first}/task")))
        for tid in tids:
            ptrace.call(ptrace.PTRACE_SEIZE, tid, 0, ptrace.PTRACE_O_TRACEEXIT)
        other = tids[-1]
        try:
            child.stdin.write(b"x")
            child.stdin.flush()
            for tid in (other, first):
                os.waitid(os.P_PID, tid, os.WSTOPPED | os.WNOWAIT | WALL)
            ptrace.call(ptrace.PTRACE_CONT, first)
            with pytest.raises(ProcessLookupError):
                next_stop(first)
            assert proc.thread_state(first) == "Z"
        finally:
            with contextlib.suppress(ProcessLookupError):
                ptrace.call(ptrace.PTRACE_CONT, other)
            os.waitpid(other, WALL)
