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


def test_signals_that_arrive_during_a_call_keep_what_they_carry(sleeper: subprocess.Popen[bytes]) -> None:
    """A queued signal has its sender's value and code, and its place in the order."""
    isa = for_machine(platform.machine())
    pid = sleeper.pid
    ptrace.call(ptrace.PTRACE_SEIZE, pid)
    ptrace.call(ptrace.PTRACE_INTERRUPT, pid)
    os.waitpid(pid, WALL)
    thread = TracedThread(pid, TracedProcess(pid, os.getpid(), 0, ("sleep",), 0), isa.registers)
    before = bytes(thread.registers())
    gadget = getattr(thread.registers(), isa.registers.pc)
    backend = backend_for(platform.machine())
    text = backend.gadget
    kept = thread.read(gadget, len(text))
    thread.write(gadget, text)
    sigqueue = ctypes.CDLL(None).sigqueue
    sigqueue.argtypes = (ctypes.c_int, ctypes.c_int, _Value)
    for number in (_NUMBER, _NUMBER + 1):
        assert sigqueue(pid, signal.SIGRTMIN, _Value(number=number)) == 0
    close = isa.syscalls.numbers["close"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        GadgetCalls(thread.process, pid, isa, backend, gadget).call(close, 9999)
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
def test_traps_that_are_sent_during_a_call_leave_their_handler(to: str) -> None:
    """The kernel forgets it when a thread runs into a trap that has SIGTRAP blocked."""
    isa = for_machine(platform.machine())
    code = "import signal, time\nsignal.signal(signal.SIGTRAP, print)\n"
    code += "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])\nprint(flush=True)\ntime.sleep(30)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        pid = child.pid
        ptrace.call(ptrace.PTRACE_SEIZE, pid)
        ptrace.call(ptrace.PTRACE_INTERRUPT, pid)
        os.waitpid(pid, WALL)
        thread = TracedThread(pid, TracedProcess(pid, os.getpid(), 0, ("python",), 0), isa.registers)
        gadget = getattr(thread.registers(), isa.registers.pc)
        backend = backend_for(platform.machine())
        thread.write(gadget, backend.gadget)
        if to == "process":
            os.kill(pid, signal.SIGTRAP)
        else:
            vm.send(isa.syscalls.numbers["tgkill"], pid, pid, signal.SIGTRAP)
        with pytest.raises(OSError, match="Bad file descriptor"):
            GadgetCalls(thread.process, pid, isa, backend, gadget).call(isa.syscalls.numbers["close"], 9999)
        bit = 1 << signal.SIGTRAP - 1
        assert int(proc.status_field(pid, "SigCgt"), 16) & bit
        assert int(proc.status_field(pid, "ShdPnd" if to == "process" else "SigPnd"), 16) & bit
        child.kill()
