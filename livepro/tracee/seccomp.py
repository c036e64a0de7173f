"""Calls made inside a process that filters its system calls: such a filter may end it for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from livepro.errors import LiveproError
from livepro.linux import proc, ptrace
from livepro.tracee.process import TracedProcess


@contextlib.contextmanager
def unfiltered(tid: int, process: TracedProcess) -> Iterator[None]:
    """Meanwhile the system calls of a stopped thread of `process` are not filtered (seccomp(2)). Raises
    LiveproError, the thread untouched, if they are and livepro may not change that."""
    if proc.status_field(tid, "Seccomp") == "0":
        yield
        return
    try:
        suspended = process.options | ptrace.PTRACE_O_SUSPEND_SECCOMP
        ptrace.call(ptrace.PTRACE_SETOPTIONS, tid, 0, suspended)
    except ProcessLookupError:
        raise
    except OSError:
        raise LiveproError(
            f"Process {process.pid} filters its system calls (seccomp): one that livepro makes inside it "
            "could end it.",
            "Run livepro with CAP_SYS_ADMIN (as root, in no sandbox itself), which may suspend the filter "
            "for those calls, or use `--engine block` or `--engine step`, which make none.",
        ) from None
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            ptrace.call(ptrace.PTRACE_SETOPTIONS, tid, 0, process.options)
