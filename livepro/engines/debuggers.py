"""Programs that trace processes of their own: debuggers, strace. A process has one tracer at a time."""

from __future__ import annotations

import os
from typing import Any

from livepro.engines.telling import Telling
from livepro.isa.base import Isa
from livepro.tracee import TracedThread

_TRACEME = 0  # include/uapi/linux/ptrace.h


class Debuggers:
    """Knows which threads want to be traced by their parents, and says so in one of `warnings`.

    The kernel refuses them that as long as livepro traces them, and the debugger fails. So they are let go
    right before they ask. What livepro has launched itself is not: livepro is its parent.
    """

    def __init__(self, isa: Isa, warnings: list[str]) -> None:
        self._isa = isa
        self._number = isa.syscalls.numbers["ptrace"]
        self._telling = Telling(warnings)

    def take(self, thread: TracedThread, before: Any) -> bool:
        """Whether a thread that is about to make a system call, with registers `before`, must be let go
        for that."""
        layout, process = self._isa.registers, thread.process
        if getattr(before, layout.syscall_number) != self._number or process.ppid == os.getpid():
            return False
        if getattr(before, layout.syscall_arguments[0]) != _TRACEME:
            return False
        self._telling.add(
            process,
            "asked to be traced by another program (a debugger). A process has one tracer at a time: what "
            "was executed after that is not counted.",
        )
        return True
