"""Wait statuses of traced threads, taken apart."""

from __future__ import annotations

import os

WALL = 0x40000000
"""__WALL: wait for threads and processes alike (include/uapi/linux/wait.h)."""

TRAP_STATUS = 0x057F
"""A plain SIGTRAP stop: what a single-step or a breakpoint gives."""


CALL_STOP = 5 | 0x80
"""The signal number of a stop at an end of a system call, under PTRACE_O_TRACESYSGOOD: ptrace(2)."""


def is_stop(status: int) -> bool:
    """Whether the thread stopped (rather than ended)."""
    return status & 0xFF == 0x7F


def stop_signal(status: int) -> int:
    """The signal number of a stop."""
    return status >> 8 & 0xFF


def stop_event(status: int) -> int:
    """The PTRACE_EVENT_* of a stop, 0 if none."""
    return status >> 16


def shell_status(status: int) -> int:
    """The exit status a shell reports: the code, or 128 + n for signal n."""
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)
