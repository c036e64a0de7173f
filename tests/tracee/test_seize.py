"""A thread that was let go, caught once more."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest

from livepro.linux import proc, ptrace
from livepro.tracee.seize import caught

SHELL = ("sh", "-c", "sleep 30 & echo $!; read wait; wait $!; echo $?")


def ends_as_it_is_told_to_stop(monkeypatch: pytest.MonkeyPatch, pid: int) -> None:
    """Have a process be killed in the moment in which it is told to stop."""
    make = ptrace.call

    def call(request: int, tid: int, *arguments: Any) -> Any:
        if request == ptrace.PTRACE_INTERRUPT and tid == pid:
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            return 0
        return make(request, tid, *arguments)

    monkeypatch.setattr(ptrace, "call", call)


def test_a_thread_is_stopped_and_goes_on() -> None:
    with subprocess.Popen(["sleep", "30"]) as child:
        with caught(child.pid):
            assert proc.thread_state(child.pid) == proc.TRACED
        assert proc.tracer(child.pid) == 0
        child.kill()


def test_the_end_of_a_child_is_for_whoever_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "30"])
    ends_as_it_is_told_to_stop(monkeypatch, child.pid)
    with pytest.raises(ProcessLookupError), caught(child.pid):
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]) == -signal.SIGKILL
    child.returncode = 0  # (subprocess need not look for it)


def test_the_end_of_another_ones_child_is_told_to_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(SHELL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
        ends_as_it_is_told_to_stop(monkeypatch, pid)
        with pytest.raises(ProcessLookupError), caught(pid):
            pass
        shell.stdin.write("\n")
        shell.stdin.close()
        assert shell.stdout.read() == f"{128 + signal.SIGKILL}\n"
