"""Taking hold of a process that runs: every thread seized and told to stop."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator

from livepro.linux import proc, ptrace
from livepro.linux.wait import WALL, is_stop, stop_event, stop_signal
from livepro.tracee.stops import alive, next_stop


class Refused(OSError):
    """The kernel does not let a process be traced; it is as it was."""


def seize(pid: int, options: int, *, stop: bool) -> list[int]:
    """Seize every thread of process `pid` with ptrace `options` and, with `stop`, tell it to stop;
    returns their tids, the oldest first.

    The threads are looked for again until there is no new one; those that seized
    threads start from now on are tracees by themselves. Each that is told to stop will report
    that, but maybe other events first. Raises Refused, with every thread let go again, when
    the kernel refuses.
    """
    held: list[int] = []
    ended: set[int] = set()  # or not to be seized for another reason
    try:
        while True:
            new = [tid for tid in proc.threads(pid) if tid not in ended and tid not in held]
            if not new:
                return held
            for tid in new:
                try:
                    ptrace.call(ptrace.PTRACE_SEIZE, tid, 0, options)
                except ProcessLookupError:
                    if alive(tid):  # it would run on unwatched, and meet what is made for watched ones
                        raise
                    ended.add(tid)
                    continue
                except PermissionError:
                    # It has exited (a leader whose other threads go on, or one on its way out), or
                    # was started by a thread seized before.
                    if proc.thread_state(tid) in "ZX":
                        ended.add(tid)
                        continue
                    if proc.tracer(tid) == threading.get_native_id():
                        ended.add(tid)  # its creator will report it
                        continue
                    raise
                held.append(tid)
                if stop:
                    interrupt(tid)
    except OSError as error:
        for tid in held:
            interrupt(tid)
            release(tid)
        with contextlib.suppress(ProcessLookupError):
            for tid in proc.threads(pid):
                if proc.tracer(tid) == threading.get_native_id():
                    release(tid)
        raise Refused(error.errno, error.strerror) from error


def interrupt(tid: int) -> None:
    """Tell a seized thread to stop. One that has ended meanwhile is none to be told."""
    try:
        ptrace.call(ptrace.PTRACE_INTERRUPT, tid)
    except ProcessLookupError:
        if alive(tid):
            raise


def release(tid: int) -> None:
    """Let a thread go that has been seized and told to stop, and nothing more."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        while is_stop(status := os.waitpid(tid, WALL)[1]):
            number = 0 if stop_event(status) else stop_signal(status)
            try:
                ptrace.call(ptrace.PTRACE_DETACH, tid, 0, number)
                return
            except OSError as error:
                if error.errno != errno.ESRCH:
                    raise


@contextlib.contextmanager
def caught(tid: int) -> Iterator[None]:
    """Meanwhile a thread that runs untraced is stopped. Raises OSError when it cannot be.

    If it ends instead it has not been waited for if it is a child: with what status it did is for whoever
    waits for that child.
    """
    ptrace.call(ptrace.PTRACE_SEIZE, tid)
    ptrace.call(ptrace.PTRACE_INTERRUPT, tid)
    try:
        while stop_event(status := next_stop(tid)) != ptrace.PTRACE_EVENT_STOP:
            ptrace.call(ptrace.PTRACE_CONT, tid, 0, stop_signal(status))
    except ProcessLookupError:
        with contextlib.suppress(OSError):
            if not _is_child(tid):  # its parent is told when its tracer has waited for it
                os.waitpid(tid, WALL)
        raise
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            ptrace.call(ptrace.PTRACE_DETACH, tid)


def _is_child(tid: int) -> bool:
    """Whether `tid` is a process that this one has started. Raises OSError when it is gone."""
    return proc.status_field(tid, "Tgid") == str(tid) and proc.status_field(tid, "PPid") == str(os.getpid())


def others_live(pid: int) -> bool:
    """Whether a process has threads besides its first."""
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    return False
