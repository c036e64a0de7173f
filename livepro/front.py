"""Two processes instead of one, so that the one people see can be killed without harm.

When a tracer dies, the kernel lets its tracees go as they are: in the midst of livepro's
memory, or about to run into a breakpoint, which ends them. So the tracing is done in
a child. The process that was started, the front, only waits for it and passes on
signals; if it is killed, by whatever signal, the child is told by the kernel, lets
the traced processes go, and ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

from livepro.linux.wait import shell_status

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  # include/uapi/linux/prctl.h
_SPARED = "-900"  # to be killed for want of memory after nearly all others (proc_pid_oom_score_adj(5))
_SENT_BY_A_PROCESS = 0  # si_code at most 0 (include/uapi/asm-generic/siginfo.h)

_PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

NAME = b"tracer"
"""The name of the child's, so that `pkill livepro` does not fit it."""


def divide() -> int | None:
    """Fork. Returns None in the child, which is to do the work; in the front, when the child
    has ended, the exit status to end with (128 + n for a child that signal n has ended)."""
    front = os.getpid()
    child = os.fork()
    if child == 0:
        prctl = ctypes.CDLL(None).prctl
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        prctl(_PR_SET_NAME, NAME)
        if os.getppid() != front:
            os._exit(128 + signal.SIGTERM)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(_SPARED)  # needs CAP_SYS_RESOURCE
        for number in _STOPPING:
            signal.signal(number, signal.SIG_IGN)  # who waits for livepro must not wait for `fg`
        return None
    watched = {signal.SIGCHLD, *_PASSED_ON}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return shell_status(status)
        received = signal.sigwaitinfo(watched)
        # What the terminal sends it sends to both.
        if received.si_signo != signal.SIGCHLD and received.si_code <= _SENT_BY_A_PROCESS:
            os.kill(child, received.si_signo)
