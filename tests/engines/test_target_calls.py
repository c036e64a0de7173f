"""Calls made inside a stopped thread leave no trace in it."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from livepro.engines.translate import backend_for
from livepro.engines.translate.threads.calling import GadgetCalls
from livepro.isa import for_machine
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace, vm
from livepro.linux.wait import WALL, stop_signal
from livepro.tracee import TracedProcess, TracedThread

_NUMBER = 4711


class _Value(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("pointer", ctypes.c_void_p))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "30"])
    yield child
    child.kill()
    child.wait()


@pytest.fixture
def blocking() -> Iterator[int]:
    """A program (its pid) that handles SIGTRAP and blocks it."""
    code = "import signal\nsignal.signal(signal.SIGTRAP, print)\n"
    code += "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])\nprint(flush=True)\nsignal.pause()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.kill()


def stopped(pid: int) -> tuple[Isa, TracedThread, GadgetCalls, int, bytes, bytes]:
    """The only thread of a process, stopped, and means to make calls as it, through a gadget at an address
    where the bytes given have been; its registers."""
    isa, backend = for_machine(platform.machine()), backend_for(platform.machine())
    ptrace.call(ptrace.PTRACE_SEIZE, pid)
    ptrace.call(ptrace.PTRACE_INTERRUPT, pid)
    os.waitpid(pid, WALL)
    thread = TracedThread(pid, TracedProcess(pid, os.getpid(), 0, ("program",), 0), isa.registers)
    before = bytes(thread.registers())
    gadget = getattr(thread.registers(), isa.registers.pc)
    kept = thread.read(gadget, len(backend.gadget))
    thread.write(gadget, backend.gadget)
    return isa, thread, GadgetCalls(thread.process, pid, isa, backend, gadget), gadget, kept, before


def test_signals_that_arrive_during_a_call_keep_what_they_carry(sleeper: subprocess.Popen[bytes]) -> None:
    """A queued signal has its sender's value and code, and its place in the order."""
    pid = sleeper.pid
    isa, thread, calls, gadget, kept, before = stopped(pid)
    sigqueue = ctypes.CDLL(None).sigqueue
    sigqueue.argtypes = (ctypes.c_int, ctypes.c_int, _Value)
    for number in (_NUMBER, _NUMBER + 1):
        assert sigqueue(pid, signal.SIGRTMIN, _Value(number=number)) == 0
    close = isa.syscalls.numbers["close"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.call(close, 9999)
    thread.write(gadget, kept)
    assert bytes(thread.registers()) == before
    for number in (_NUMBER, _NUMBER + 1):
        ptrace.call(ptrace.PTRACE_CONT, pid)
        assert stop_signal(os.waitpid(pid, WALL)[1]) == signal.SIGRTMIN
        info = ptrace.signal_info(pid)
        assert info is not None
        # si_pid, si_uid, si_value: the last in the first bytes of what follows.
        assert (info.code, info.pid, bytes(info._rest)[:4]) == (-1, os.getpid(), number.to_bytes(4, "little"))


@pytest.mark.parametrize("to", ["process", "thread"])
def test_traps_that_are_sent_during_a_call_leave_their_handler(to: str, blocking: int) -> None:
    """The kernel forgets it when a thread runs into a trap that has SIGTRAP blocked."""
    isa, _, calls, *_ = stopped(blocking)
    if to == "process":
        os.kill(blocking, signal.SIGTRAP)
    else:
        vm.send(isa.syscalls.numbers["tgkill"], blocking, blocking, signal.SIGTRAP)
    with pytest.raises(OSError, match="Bad file descriptor"):
        calls.call(isa.syscalls.numbers["close"], 9999)
    bit = 1 << signal.SIGTRAP - 1
    assert int(proc.status_field(blocking, "SigCgt"), 16) & bit
    assert int(proc.status_field(blocking, "ShdPnd" if to == "process" else "SigPnd"), 16) & bit
