"""Programs that ignore SIGTRAP: the kernel forgets that at the first trap that livepro has them make."""

from __future__ import annotations

import signal
from typing import Any

from livepro.isa.base import Isa
from livepro.linux import proc
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.stops import sent

_IGNORE = 1  # SIG_IGN: include/uapi/asm-generic/signal-defs.h
_POINTER = 8  # bytes of the handler, the first field of the kernel's struct sigaction


class IgnoredTraps:
    """Knows which processes ignore SIGTRAP. A trap that finds it ignored sets the default action
    (force_sig_info_to_task in kernel/signal.c), and one that somebody sends later would end the process."""

    def __init__(self, isa: Isa) -> None:
        self._layout = isa.registers
        self._acting = isa.syscalls.numbers["rt_sigaction"]
        self._pids: set[int] = set()  # an exec changes nothing in that

    def begin(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        """An image of a process begins, as the child of `parent` if there is one."""
        if parent is not None:
            ignores = parent.pid in self._pids
        else:
            try:
                ignored = int(proc.status_field(process.pid, "SigIgn"), 16)
            except (OSError, KeyError):
                return  # it has ended
            ignores = bool(ignored >> signal.SIGTRAP - 1 & 1)
        if ignores:
            self._pids.add(process.pid)

    def end(self, process: TracedProcess) -> None:
        """An image of a process has ended."""
        if process.exit is not None:
            self._pids.discard(process.pid)

    def called(self, thread: TracedThread, before: Any) -> None:
        """A stopped thread has made a system call with registers `before`. Raises OSError."""
        layout = self._layout
        if getattr(before, layout.syscall_number) != self._acting:
            return
        number, action = (getattr(before, name) for name in layout.syscall_arguments[:2])
        if number & 0xFFFF_FFFF != signal.SIGTRAP or not action:  # (an int)
            return
        if getattr(thread.registers(), layout.syscall_result) == 0:
            handler = int.from_bytes(thread.read(action, _POINTER), "little")
            change = self._pids.add if handler == _IGNORE else self._pids.discard
            change(thread.process.pid)

    def delivered(self, thread: TracedThread, number: int) -> int:
        """The signal that a thread which is about to be delivered signal `number` is to go on with: none (0)
        for a SIGTRAP that somebody has sent to a process that ignores it. Raises OSError."""
        if number == signal.SIGTRAP and thread.process.pid in self._pids and sent(thread.tid):
            return 0
        return number
