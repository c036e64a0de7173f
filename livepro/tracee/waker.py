"""Wakes the thread that traces: other threads ask for it, and its wait for tracees returns.

A tracer sleeps in waitpid, from which Python wakes for nothing but a child's
change of state. The waker is such a child: a process that does nothing but wait,
traced like the program. Who wants the tracer sends it a signal, which the tracing
thread is told of and never delivers. The program notices nothing of that.
"""

from __future__ import annotations

import contextlib
import os
import signal

from livepro.linux import ptrace
from livepro.linux.wait import WALL

_SIGNAL = signal.SIGWINCH  # ignored by default, and reported to a tracer all the same
_WAITER = "/bin/cat"
"""What waits: it reads from a pipe that nobody writes to, and ends when livepro does."""


class Waker:
    """Started, continued and stopped by the tracing thread; any thread may `wake` that one by it."""

    def __init__(self) -> None:
        self.pid = 0
        self._pipe = -1

    def start(self) -> None:
        """Start the child. Raises OSError when it cannot be started or traced."""
        read, self._pipe = os.pipe()
        try:
            null = os.open(os.devnull, os.O_RDWR)
            try:
                actions = [(os.POSIX_SPAWN_DUP2, read, 0), *((os.POSIX_SPAWN_DUP2, null, n) for n in (1, 2))]
                self.pid = os.posix_spawn(_WAITER, ["livepro-waker"], {}, file_actions=actions, setsigmask=())
            finally:
                os.close(null)
            ptrace.call(ptrace.PTRACE_SEIZE, self.pid, 0, ptrace.PTRACE_O_EXITKILL)
        except OSError:
            self.stop()
            raise
        finally:
            os.close(read)

    def wake(self) -> None:
        """Make the tracing thread's wait return."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, _SIGNAL)

    def go_on(self) -> None:
        """Let the child wait for the next signal: to be called for each of its statuses."""
        with contextlib.suppress(ProcessLookupError):
            ptrace.call(ptrace.PTRACE_CONT, self.pid)

    def stop(self) -> None:
        """End the child and wait for its end."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        pid, self.pid = self.pid, 0
        if not pid:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while not _ended(os.waitpid(pid, WALL)[1]):
                pass


def _ended(status: int) -> bool:
    return os.WIFEXITED(status) or os.WIFSIGNALED(status)
