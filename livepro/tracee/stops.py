"""What a stop leaves to be known: whether it waits for an answer, whether another one is due."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator

from livepro.linux import proc, ptrace
from livepro.linux.wait import WALL, is_stop, stop_event, stop_signal

WNOTHREAD = 0x20000000  # include/uapi/linux/wait.h: children of other threads are not ours
WAIT_FLAGS = WALL | WNOTHREAD
"""How the thread that traces waits."""


ROUND = 16
"""Stops between two looks at threads out of turn: a power of 2."""


def next_in_turn(tids: Iterable[int], count: int) -> tuple[int, int]:
    """Wait for the next stop as `os.waitpid` does, some of the threads `tids` going first: others
    each time, by the `count` of stops so far.

    The kernel looks at the tracer's own child before other threads (do_wait in
    kernel/exit.c). On one processor a first thread that waits for them and stops
    all the time would keep them waiting for ever.
    """
    known = tuple(tids)
    first = count // ROUND
    for index in range(first, first + min(len(known), ROUND // 2)):
        try:
            tid, status = os.waitpid(known[index % len(known)], WAIT_FLAGS | os.WNOHANG)
        except ChildProcessError:
            continue  # gone, which has been told already
        if tid:
            return tid, status
    return os.waitpid(-1, WAIT_FLAGS)


def in_hand(tid: int) -> bool:
    """Whether a thread is in a stop that has been reported, and waits to be resumed."""
    flags = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT | WAIT_FLAGS
    try:
        return proc.thread_state(tid) == proc.TRACED and os.waitid(os.P_PID, tid, flags) is None
    except OSError:
        return False


_ENDS = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
_PROMPT, _SOON = 20, 0.0001  # how often to look for a stop at once, and seconds in between later
_LOOKS, _LOOK = 3, 0.001  # how often to look whether a thread has been killed, and seconds in between


def alive(tid: int) -> bool:
    """Whether a thread has not ended."""
    return proc.thread_state(tid) not in "ZX"


def traced(tid: int) -> bool:
    """Whether a thread is this thread's tracee, one that has ended and of whose end it has yet to be told
    included."""
    return proc.tracer(tid) == threading.get_native_id()


def killed(tid: int) -> bool:
    """Whether a thread for which something has failed is on its way to its end."""
    for _ in range(_LOOKS):
        if proc.dying(tid):
            return True
        time.sleep(_LOOK)  # the kernel may just be taking the signal that kills it
    return False


@contextlib.contextmanager
def unless_killed(tid: int) -> Iterator[None]:
    """Meanwhile a system call that fails is no error if the thread has been killed: its end is the next
    status. One that waits for an answer must not be forgotten."""
    try:
        yield
    except OSError:
        if not killed(tid):
            raise


def failed(tid: int) -> bool:
    """Whether a request for a stopped thread, made by `ptrace.raw`, that has just returned -1 has failed (or
    has read a -1: errno is 0 then), as it does for a thread that has been killed: its end is the next status.

    Raises the request's OSError for any other thread. One that is run on though it was not led where it must
    go, or is not run on at all, would be lost.
    """
    code = ctypes.get_errno()
    if code and not killed(tid):
        raise OSError(code, f"ptrace({tid}): {os.strerror(code)}")
    return code != 0


def message(tid: int, event: int) -> int:
    """The message of the ptrace event for which a thread has stopped. Raises ProcessLookupError if the thread
    has been killed: at the stop before its end the kernel would give its exit status for a child's number."""
    found = ptrace.event_message(tid)
    info = ptrace.signal_info(tid)
    if info is None or info.code >> 8 != event:  # ptrace(2): SIGTRAP | event << 8
        raise ProcessLookupError(errno.ESRCH, f"thread {tid} is at another stop by now")
    return found


def trap_pending(tid: int) -> bool:
    """Whether a trap of the thread's has yet to be reported. Raises OSError when it is gone."""
    return bool(int(proc.status_field(tid, "SigPnd"), 16) >> signal.SIGTRAP - 1 & 1)


def sent(tid: int) -> bool:
    """Whether somebody has sent the signal that a thread is about to be delivered. Raises OSError."""
    info = ptrace.signal_info(tid)
    # AArch64 reports a step on the way out of a system call with such a code, but as if by nobody.
    return info is not None and info.code <= 0 and info.pid != 0


def _event(tid: int) -> os.waitid_result | None:
    """What becomes of a thread next; it is left to be waited for. None for the first thread of a process that
    has ended before the others: the kernel tells of its end when theirs has been told (delay_group_leader in
    include/linux/sched/signal.h), which may be never if they stand still meanwhile."""
    flags = os.WEXITED | os.WSTOPPED | os.WNOWAIT | WALL
    if not _goes_before_others(tid):
        return os.waitid(os.P_PID, tid, flags)
    looks = 0
    while (found := os.waitid(os.P_PID, tid, flags | os.WNOHANG)) is None:
        if proc.thread_state(tid) == "Z":
            return None
        looks += 1
        time.sleep(0 if looks < _PROMPT else _SOON)
    return found


def _goes_before_others(tid: int) -> bool:
    """Whether this is the first thread of a process that has others."""
    try:
        os.close(os.pidfd_open(tid))  # which is of first threads alone
        return len(os.listdir(f"/proc/{tid}/task")) > 1
    except OSError:
        return False


def next_stop(tid: int) -> int:
    """The wait status of a thread's next stop. Raises ProcessLookupError if it ends instead, or is about
    to: of that whoever waits for all threads is told."""
    while True:
        found = _event(tid)
        if found is None or found.si_code in _ENDS:
            break
        found = os.waitid(os.P_PID, tid, os.WSTOPPED | os.WNOHANG | WALL)
        if found is None:
            continue  # killed meanwhile
        status: int = found.si_status << 8 | 0x7F  # as waitpid says it
        if stop_event(status) != ptrace.PTRACE_EVENT_EXIT:
            return status
        ptrace.call(ptrace.PTRACE_CONT, tid)  # nobody else will be told of this stop
        break
    raise ProcessLookupError(f"thread {tid} has ended")


def absorb_trap(tid: int) -> int:
    """Have a trap that the tracing caused, and that has yet to be reported, reported now: it
    would end the program. Returns the signal to deliver, 0 if none. Raises OSError."""
    while trap_pending(tid):
        ptrace.call(ptrace.PTRACE_CONT, tid)
        status = next_stop(tid)
        if stop_event(status):
            continue
        number = stop_signal(status)
        if number != signal.SIGTRAP or sent(tid):
            return number
    return 0


def end_all(pids: Iterable[int], tids: Iterable[int]) -> None:
    """Kill traced processes, and wait until this thread has no tracee and no child left; `tids` are the
    threads that are known to be traced."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for tid in tids:  # one that stands still as it exits does not heed that
        with contextlib.suppress(ProcessLookupError):
            ptrace.call(ptrace.PTRACE_CONT, tid)
    with contextlib.suppress(ChildProcessError):
        while True:
            tid, status = os.waitpid(-1, WAIT_FLAGS)
            if is_stop(status):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(tid, signal.SIGKILL)  # it may have been born since
                    ptrace.call(ptrace.PTRACE_CONT, tid)
