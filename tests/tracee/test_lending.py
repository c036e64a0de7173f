"""A stopped thread is lent for a call, and gets back what is its own."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from collections.abc import Iterator

import pytest

from livepro.isa import for_machine
from livepro.linux import ptrace
from livepro.linux.wait import WALL
from livepro.tracee import TracedProcess, lending
from livepro.tracee.lending import give_back, lent

ISA = for_machine(platform.machine())
_ALL = (1 << 64) - 1


@pytest.fixture
def process() -> Iterator[TracedProcess]:
    """A process that waits, stopped."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as waiting:
        ptrace.call(ptrace.PTRACE_SEIZE, waiting.pid)
        ptrace.call(ptrace.PTRACE_INTERRUPT, waiting.pid)
        os.waitpid(waiting.pid, WALL)
        yield TracedProcess(waiting.pid, os.getpid(), 0, ("cat",), 0)
        waiting.kill()


def registers(process: TracedProcess) -> bytes:
    return bytes(ptrace.get_registers(process.pid, ISA.registers.structure))


def test_a_thread_that_has_not_got_back_its_own_is_lent_again(
    process: TracedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has then is a call's, and not to be kept: the first loan's is given back in the end."""
    tid, structure = process.pid, ISA.registers.structure
    own, mask = registers(process), ptrace.signal_mask(tid)

    with monkeypatch.context() as broken:
        broken.setattr(lending, "give_back", lambda *_: False)  # a failed one
        with lent(process, tid, structure, _ALL) as given:
            setattr(given, ISA.registers.pc, 4096)
            ptrace.set_registers(tid, given)
    assert registers(process) != own
    assert ptrace.signal_mask(tid) != mask
    with lent(process, tid, structure, _ALL) as given:
        assert bytes(given) == own
        setattr(given, ISA.registers.pc, 8192)
        ptrace.set_registers(tid, given)
    assert registers(process) == own
    assert ptrace.signal_mask(tid) == mask
    assert not give_back(process, tid)


def test_what_a_stop_was_for_is_known_behind_a_loan(process: TracedProcess) -> None:
    """A call is made by a step, whose stop is another one: a thread may have run into a breakpoint before."""
    tid, structure = process.pid, ISA.registers.structure
    ptrace.call(ptrace.PTRACE_SINGLESTEP, tid)  # from the stop that it was told to make, to one of a signal
    os.kill(tid, signal.SIGWINCH)
    os.waitpid(tid, WALL)
    before = ptrace.signal_info(tid)
    assert before is not None
    with lent(process, tid, structure, _ALL):
        ptrace.call(ptrace.PTRACE_INTERRUPT, tid)
        ptrace.call(ptrace.PTRACE_CONT, tid)
        os.waitpid(tid, WALL)
        within = ptrace.signal_info(tid)
        assert bytes(within or b"") != bytes(before)
    assert bytes(ptrace.signal_info(tid) or b"") == bytes(before)
