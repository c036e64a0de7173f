"""Another process's memory by /proc/PID/mem."""

from __future__ import annotations

import os
import subprocess

import pytest

from livepro.linux.proc import Memory, address_space


def test_nothing_can_be_written_to_a_process_that_has_ended() -> None:
    """The kernel then says that it has written nothing, as often as it is asked."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        memory = Memory(process.pid)
        stack = next(m for m in address_space(process.pid).mappings if m.path == "[stack]")
        here = memory.read(stack.start, 8)
        memory.write(stack.start, here)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError):
            memory.write(stack.start, here)
        assert memory.read(stack.start, 8) == b""
        memory.close()


def test_a_process_that_has_ended_before_it_was_opened_has_no_memory() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        memory = Memory(process.pid)
        assert memory.read(4096, 8) == b""
        with pytest.raises(ProcessLookupError, match="has ended"):
            memory.write(4096, b"x")
        memory.close()
