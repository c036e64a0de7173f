"""Starting a command so that it is traced from its first instruction."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
from collections.abc import Mapping, Sequence, Set

from livepro.errors import LiveproError
from livepro.linux import ptrace
from livepro.linux.wait import WALL, is_stop, stop_event, stop_signal
from livepro.tracee.descriptors import raise_own

_ADDR_NO_RANDOMIZE = 0x0040000  # include/uapi/linux/personality.h

# Looked up here: a child of a program with threads must not take the loader's locks.
_personality = ctypes.CDLL(None).personality

# CPython ignores these two at start-up (Modules/signalmodule.c, pylifecycle.c);
# a program expects to be started with their default action.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def _become(
    executable: str, command: Sequence[str], environment: Mapping[bytes, bytes], aslr: bool, mask: Set[int]
) -> None:
    """In the child: restore what Python changed and the signal `mask`, then exec. Returns only on
    failure, by OSError."""
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    if not aslr:
        _personality(_ADDR_NO_RANDOMIZE)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)  # as exec does: a handler would swallow what comes before
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.execve(executable, list(command), dict(environment))


def _until_exec(pid: int) -> int:
    """The wait status of a seized child's exec, or of its end before that."""
    while True:
        status = os.waitpid(pid, WALL)[1]
        if not is_stop(status) or stop_event(status) == ptrace.PTRACE_EVENT_EXEC:
            return status
        number = 0 if stop_event(status) else stop_signal(status)
        with contextlib.suppress(ProcessLookupError):  # killed meanwhile
            ptrace.call(ptrace.PTRACE_CONT, pid, 0, number)


def refused(error: OSError) -> LiveproError:
    """What is told when livepro may not trace a child of its own."""
    return LiveproError(
        f"The kernel refuses to let livepro trace its own child: {os.strerror(error.errno or 0)}.",
        "Run `livepro doctor` to see why: usual causes are kernel.yama.ptrace_scope = 3, a container "
        "without CAP_SYS_PTRACE or with a seccomp profile that forbids ptrace, or livepro itself "
        "running under a debugger or strace.",
    )


def launch(
    executable: str,
    command: Sequence[str],
    environment: Mapping[bytes, bytes],
    *,
    aslr: bool,
    options: int,
) -> tuple[int, int]:
    """Start `executable` with arguments `command`; returns its pid, seized with ptrace `options`,
    and a wait status: the stop of its exec, or its end if a signal has ended it before.

    The child waits on a pipe until it is seized. Working directory, standard streams,
    signal mask and dispositions are livepro's own, its limits those that livepro has had until now:
    livepro itself may open as many files as it may from here on. Raises LiveproError when ptrace is refused
    or the exec fails.
    """
    go_read, go_write = os.pipe()
    error_read, error_write = os.pipe()
    # Signals wait until the child has no handlers of livepro's any more.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        try:
            os.close(go_write)
            os.close(error_read)
            if os.read(go_read, 1):
                _become(executable, command, environment, aslr, mask)
        except OSError as error:
            os.write(error_write, struct.pack("i", error.errno or errno.EIO))
        finally:
            os._exit(127)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    raise_own()  # the child has the limit that there was
    os.close(go_read)
    os.close(error_write)
    try:
        try:
            ptrace.call(ptrace.PTRACE_SEIZE, pid, 0, options)
        except OSError as error:
            raise refused(error) from None
        os.write(go_write, b"g")
    except BaseException:
        os.close(go_write)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        os.close(error_read)
        raise
    os.close(go_write)
    # Not the pipe first: a signal stops the child before its exec, and it waits for an answer.
    status = _until_exec(pid)
    # The pipe closes on exec: nothing to read means that it worked.
    report = os.read(error_read, 4)
    os.close(error_read)
    if report:
        number = struct.unpack("i", report)[0]
        raise LiveproError(
            f"Cannot execute '{executable}': {os.strerror(number)}.",
            "Check that it is an executable of this machine; start a script that has no #! line "
            "through its interpreter.",
            status=127 if number == errno.ENOENT else 126,
        )
    return pid, status
