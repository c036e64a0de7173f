"""Threads that signals leave no time: they get some, while the signals wait.

Being traced makes a signal's handler take longer; a timer that natively leaves a
program time enough could leave it none. A thread that signals have found several
times in a row where it had returned from the handler of the one before runs on
with its signals blocked, for as long as it did not get to. It stops before it
makes a system call, which may have to do with signals.
"""

from __future__ import annotations

import contextlib
import signal
import time

from livepro.engines.translate import layout
from livepro.engines.translate.thread import TranslatedThread
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.tracee import Tracer

FAULTS = frozenset((signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP))
"""Signals that instructions raise."""

ALL_BUT_FAULTS = (1 << 64) - 1 & ~sum(1 << number - 1 for number in FAULTS)
"""A mask that holds off what can be: a fault that finds its signal blocked ends the program
(force_sig_info_to_task in kernel/signal.c)."""

_STREAK = 3  # signals in a row without any progress in between
_LONGEST_DEFERRAL = 0.02  # seconds: a thread is let run for as long as it did not get to, but no longer


class Deferral:
    """Gives starving threads time, and keeps the program's own signal masks (`TranslatedThread.mask`) while
    livepro's are in force."""

    def __init__(self, isa: Isa, tracer: Tracer) -> None:
        self._tracer = tracer
        self._until: dict[int, float] = {}
        self._masking = isa.syscalls.named(  # see, change or hand on the signal mask
            *("rt_sigprocmask", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend", "rt_sigreturn"),
            *("pselect6", "ppoll", "epoll_pwait", "epoll_pwait2", "io_pgetevents", "io_uring_enter"),
            *("clone", "clone3", "fork", "vfork", "execve", "execveat"),
        )

    @property
    def pending(self) -> bool:
        """Whether a thread is given time."""
        return bool(self._until)

    def end_late(self) -> None:
        """Tell threads to stop whose time is over."""
        now = time.monotonic()
        for late in [tid for tid, until in self._until.items() if until <= now]:
            del self._until[late]
            with contextlib.suppress(OSError):
                ptrace.call(ptrace.PTRACE_INTERRUPT, late)

    def forget(self, tid: int) -> None:
        """A thread is gone."""
        self._until.pop(tid, None)

    def restore_mask(self, state: TranslatedThread) -> None:
        """Let the program's own signal mask be in force again."""
        self.note_return(state)
        if state.mask is None:
            return
        ptrace.set_signal_mask(state.thread.tid, state.mask)
        state.mask = None
        if state.deferred:
            self._end(state)

    def note_return(self, state: TranslatedThread) -> None:
        """A return from a handler has ended a thread's deferral if the thread made one: the return restored
        the program's own mask, and the one that was kept here is out of date."""
        if state.deferred and not state.words[layout.DEFERRING // 8]:
            state.mask = None
            self._end(state)

    def _end(self, state: TranslatedThread) -> None:
        state.deferred = 0
        state.words[layout.DEFERRING // 8] = 0
        self._until.pop(state.thread.tid, None)

    def mask_for_call(self, state: TranslatedThread, number: int) -> None:
        """A thread is about to make system call `number`."""
        self.note_return(state)
        if state.mask is None:
            return
        if number in self._masking or not state.deferred:
            self.restore_mask(state)
        else:
            # It may send the thread a signal, or wait for one; or be what comes next in a
            # program that is left no time.
            ptrace.set_signal_mask(state.thread.tid, state.mask | 1 << state.deferred - 1)

    @staticmethod
    def starves(state: TranslatedThread, pc: int) -> bool:
        """Whether signals come so fast that the thread no longer gets to execute anything
        but their handlers."""
        if pc != state.space.memory.resume:
            state.streak = 0
            return False
        if not state.streak:
            state.since = time.monotonic()
        state.streak += 1
        return state.streak > _STREAK and state.mask is None

    def begin(self, state: TranslatedThread, number: int) -> None:
        """Let the thread run for as long as it did not get to, and keep signals waiting.

        The thread stops before it makes a system call, which may have to do with signals.
        """
        tid = state.thread.tid
        now = time.monotonic()
        self._until[tid] = now + min(now - state.since, _LONGEST_DEFERRAL)
        state.streak = 0
        state.deferred = number
        state.mask = ptrace.signal_mask(tid)
        state.words[layout.DEFERRING // 8] = 1
        # Let through and blocked, it goes back into the queue (ptrace_signal in kernel/signal.c).
        ptrace.set_signal_mask(tid, ALL_BUT_FAULTS)
        ptrace.call(ptrace.PTRACE_CONT, tid, 0, number)

    def extend(self, state: TranslatedThread, pc: int) -> bool:
        """Give a thread at cache address `pc` more time if a busy machine has not let it run."""
        self.note_return(state)
        if not state.deferred or pc != state.space.memory.resume or self._tracer.leaving:
            return False
        self._until[state.thread.tid] = time.monotonic() + _LONGEST_DEFERRAL
        return True
