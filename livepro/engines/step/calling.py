"""System calls of threads that block SIGTRAP, or may do so from then on.

A trap that finds SIGTRAP blocked has the kernel unblock it and forget its handler (force_sig_info_to_task in
kernel/signal.c). So a thread that blocks it does so at its system calls only, which can see its mask, hand it
on or change it, and where a handler of its is entered, whose frame has it; in between the mask is *lifted*.
Such a call ends with a stop of its own (PTRACE_SYSCALL), at which the mask can be lifted before any trap. A
SIGTRAP that comes while the mask is lifted is kept until the next call, and sent again then: it is pending.
"""

from __future__ import annotations

import enum
import errno
import os
import signal
from typing import TYPE_CHECKING

from livepro.isa.base import RESTARTS, Isa, Quirk
from livepro.linux import proc, ptrace, vm
from livepro.tracee import TracedThread
from livepro.tracee.stops import absorb_trap, sent, trap_pending, unless_killed

if TYPE_CHECKING:
    from livepro.engines.step.stepping import StepThread

_TRAP = 1 << signal.SIGTRAP - 1
# Calls that have another mask for as long as they wait: sigsuspend(2), poll(2), select(2), epoll_wait(2).
_WAITING = (
    *("rt_sigsuspend", "ppoll", "pselect6", "epoll_pwait", "epoll_pwait2"),
    *("io_pgetevents", "io_uring_enter"),
)
# The mask that a call waited with is in force until the signal is taken that has ended it.
_INTERRUPTED = RESTARTS | {(1 << 64) - errno.EINTR}

_STEP: int = ptrace.PTRACE_SINGLESTEP
_TO_CALL: int = ptrace.PTRACE_SYSCALL


class Call(enum.Enum):
    """Where a thread is in a call that ends with a stop of its own: in none, about to enter it, within it."""

    NONE = enum.auto()
    AHEAD = enum.auto()
    WITHIN = enum.auto()


class MaskedCalls:
    """Keeps the handler of SIGTRAP and the masks of threads from the traps that they are made to take."""

    def __init__(self, isa: Isa) -> None:
        self._layout = isa.registers
        self._waiting = isa.syscalls.named(*_WAITING)
        self._masking = self._waiting | isa.syscalls.named("rt_sigprocmask", "rt_sigreturn")
        self._returning = isa.syscalls.numbers["rt_sigreturn"]
        self._telling = isa.syscalls.numbers["tgkill"]
        self._lifted: dict[int, int] = {}
        # The SIGTRAP of a thread that blocks it, as it was sent: kept back, or sent again.
        self._kept: dict[int, ptrace.SignalInfo] = {}
        self._again: dict[int, ptrace.SignalInfo] = {}
        self._due: set[int] = set()

    def own(self, tid: int) -> int | None:
        """The program's own mask of a thread whose mask is lifted, else None."""
        return self._lifted.get(tid)

    def lift(self, tid: int) -> None:
        """A stopped thread that has its own mask may be made to trap when it runs on. Raises OSError."""
        with unless_killed(tid):
            mask = ptrace.signal_mask(tid)
            if mask & _TRAP:
                ptrace.set_signal_mask(tid, mask & ~_TRAP)
                self._lifted[tid] = mask
            if mask & _TRAP or tid in self._again:
                if trap_pending(tid):
                    self._due.add(tid)
                else:
                    self._again.pop(tid, None)  # the program has taken it (sigwait)

    def due(self, tid: int) -> bool:
        """Whether the next stop of a stopped thread is for a SIGTRAP that somebody has sent. Asked once."""
        if tid not in self._due:
            return False
        self._due.discard(tid)
        return True

    def lower(self, thread: TracedThread) -> None:
        """Give a stopped thread its own mask. Raises OSError."""
        tid = thread.tid
        mask = self._lifted.pop(tid, None)
        if mask is None:
            return
        with unless_killed(tid):
            ptrace.set_signal_mask(tid, mask)
            if tid in self._kept:
                vm.send(self._telling, thread.process.pid, tid, signal.SIGTRAP)
                self._again[tid] = self._kept.pop(tid)

    def leave(self, thread: TracedThread) -> int:
        """Give a stopped thread that is to be let go its own mask: the signal that it is to be let go with,
        0 if none. Raises OSError."""
        number = 0
        if thread.tid in self._lifted:
            number = absorb_trap(thread.tid)  # with its own mask it would not be told of
            self.lower(thread)
        return number

    def keeps(self, tid: int, number: int) -> bool:
        """Whether signal `number` is not to be delivered yet to a thread that has stopped for it. Raises
        OSError."""
        if number != signal.SIGTRAP or not (tid in self._lifted or tid in self._again) or not sent(tid):
            return False
        info = ptrace.signal_info(tid)
        assert info is not None
        if info.pid == os.getpid():
            info = self._again.pop(tid, info)  # as it was sent to the program, not by livepro
        if tid not in self._lifted:
            ptrace.set_signal_info(tid, info)
            return False
        self._kept.setdefault(tid, info)
        return True

    def forget(self, tid: int) -> None:
        """The thread has ended."""
        for known in (self._lifted, self._kept, self._again):
            known.pop(tid, None)
        self._due.discard(tid)

    def request(self, state: StepThread) -> int:
        """The ptrace request by which a thread is to execute its next instruction. Raises OSError."""
        if state.call is Call.WITHIN:
            return _TO_CALL
        calls = state.block.code.quirks[state.index] is Quirk.SYSCALL
        if calls and (state.thread.tid in self._lifted or self._number(state) in self._masking):
            self.lower(state.thread)
            state.call = Call.AHEAD
            return _TO_CALL
        state.call = Call.NONE
        return _STEP

    def entered(self, state: StepThread) -> bool:
        """A thread has stopped at one end of such a call: whether it has entered it, and is to go on."""
        state.call = Call.WITHIN if state.call is Call.AHEAD else Call.NONE
        return state.call is Call.WITHIN

    def made(self, state: StepThread) -> bool:
        """A thread stands at the end of such a call: whether that was the one by which a handler returns,
        which has no result. Raises OSError."""
        number = self._number(state)
        result = getattr(state.thread.registers(), self._layout.syscall_result)
        if number not in self._waiting or result not in _INTERRUPTED:
            self.lift(state.thread.tid)
        return number == self._returning

    def _number(self, state: StepThread) -> int:
        """Which call a thread stands at."""
        return int(getattr(state.before, self._layout.syscall_number))

    def deliver(self, state: StepThread, number: int) -> int:
        """The ptrace request by which a stopped thread is to be delivered signal `number`. Raises OSError."""
        tid = state.thread.tid
        state.call = Call.NONE
        calls = state.block.code.quirks[state.index] is Quirk.SYSCALL
        if tid not in self._lifted and not (calls and self._number(state) in self._masking):
            return _STEP
        if not int(proc.status_field(tid, "SigCgt"), 16) >> number - 1 & 1:
            return self.request(state)  # without a handler a call that it stands at is begun (again) at once
        self.lower(state.thread)  # the handler's frame has it
        return _STEP
