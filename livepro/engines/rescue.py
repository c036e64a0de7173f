"""The last line of defence: after an error of livepro's own, every thread is let go unharmed.

Nothing is taken for granted here of what the engine was doing when it failed: which threads are traced is
asked of the kernel, why each is stopped is asked of the kernel, and all that the engine is asked is where
in the program a stopped thread is (`Homing`). A thread that cannot be told is stepped until it can; one that
cannot be stepped is let run on, still traced, and asked again a moment later, somewhere else. The memory
that the engine shares with the program is only unmapped when every thread is out of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from livepro.isa.base import Isa
from livepro.linux import proc, ptrace, vm
from livepro.linux.wait import WALL, is_stop, stop_event
from livepro.tracee import Tracer
from livepro.tracee.lending import give_back
from livepro.tracee.stops import WAIT_FLAGS, alive, in_hand, sent, trap_pending

PATIENCE = 60.0
"""Seconds until a thread that could not be brought out is let go where it is."""
_AGAIN = 0.005  # seconds between two requests to a thread to stop
_STEPS = 20_000  # emitted instructions to a boundary: taking back all allowances is the longest sequence
_STEP_TIME = 1.0  # seconds for one step, which waits for nothing but a page
_PAUSE = 0.0005  # seconds between two looks

_FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
_KEPT_OUT = (*_FAULTS, signal.SIGTRAP, signal.SIGKILL, signal.SIGSTOP)  # the last two by the kernel
_ALL_BUT_FAULTS = (1 << 64) - 1 & ~sum(1 << number - 1 for number in _KEPT_OUT)
# Stops within a system call or on the way into an image: there will be another one soon.
_BIRTHS = (ptrace.PTRACE_EVENT_FORK, ptrace.PTRACE_EVENT_VFORK, ptrace.PTRACE_EVENT_CLONE)
_ENDS = (ptrace.PTRACE_EVENT_EXEC, ptrace.PTRACE_EVENT_EXIT)


class Homing(Protocol):
    """What an engine knows of where threads are in the program. Each method may raise: it is asked again."""

    def open(self) -> None:
        """Make harmless what threads meet that run on meanwhile, as far as that needs none of them."""

    def planted(self, tid: int, address: int) -> bool | None:
        """Whether a breakpoint at `address` is livepro's; None if the thread has run into that before, and
        has been led on."""

    def home(self, tid: int, registers: Any, *, trapped: bool, faulted: bool) -> bool:
        """Change a stopped thread's `registers` to those that it would have in the program's own code; False
        if it must be stepped on first. `trapped`: it has just run into a breakpoint of livepro's;
        `faulted`: the instruction that it is at cannot be executed, and will fail again in the program's
        own code."""

    def leave(self, tid: int, registers: Any) -> None:
        """Give a stopped thread these registers, and all else that is its own. Raises OSError."""

    def in_hand(self, tid: int) -> tuple[int, Any] | None:
        """A signal (number, siginfo or None) that was taken from the kernel and not delivered yet."""

    def mask(self, tid: int) -> int | None:
        """The program's own signal mask, where another one is in force."""

    def last(self, tid: int, others: list[int]) -> None:
        """A thread that has been brought out is about to be let go; `others` are still to be."""


class OwnCode:
    """Threads that have never left the program's own code, and only carry what stepping leaves behind. `mask`
    knows the own mask of a thread (tid) that runs with another one."""

    def __init__(self, isa: Isa, mask: Callable[[int], int | None]) -> None:
        self._isa = isa
        self._mask = mask

    def open(self) -> None:
        """Nothing has been changed."""

    def planted(self, tid: int, address: int) -> bool:
        """None is."""
        return False

    def home(self, tid: int, registers: Any, *, trapped: bool, faulted: bool) -> bool:
        """At once: see `Homing`."""
        self._isa.stop_stepping(registers)
        return True

    def leave(self, tid: int, registers: Any) -> None:
        """See `Homing`."""
        ptrace.set_registers(tid, registers)

    def in_hand(self, tid: int) -> tuple[int, Any] | None:
        """None: signals go through as they come."""
        return None

    def mask(self, tid: int) -> int | None:
        """See `Homing`."""
        return self._mask(tid)

    def last(self, tid: int, others: list[int]) -> None:
        """There is nothing to take down."""


class _Effort:
    """What has been tried for a thread: `asked` is when it was told to stop last, `mask` its signal mask
    while another is in force, `held` a signal to be delivered when it is `out`."""

    def __init__(self) -> None:
        self.asked = 0.0
        self.mask: int | None = None
        self.held: tuple[int, Any] | None = None
        self.out = False


class _Ended(Exception):
    """A thread has ended meanwhile."""


class Rescue:
    """Lets everything go that a tracer traces. For the thread that traced it."""

    def __init__(self, tracer: Tracer, isa: Isa, homing: Homing) -> None:
        self._tracer = tracer
        self._isa = isa
        self._homing = homing
        self._known: dict[int, _Effort] = {}
        self.lost: list[int] = []
        """Threads that had to be let go where they were."""

    def run(self) -> None:
        """Let go. Never raises; returns when no thread is traced any more, or after `PATIENCE`."""
        until = time.monotonic() + PATIENCE
        opened = False
        while True:
            if not opened:
                with contextlib.suppress(Exception):
                    self._homing.open()
                    opened = True
            with contextlib.suppress(Exception):
                self._look_for_threads()
            with contextlib.suppress(Exception):
                self._hear()
            for tid in list(self._known):
                try:
                    self._attend(tid)
                except (_Ended, ProcessLookupError):
                    if not alive(tid):
                        self._known.pop(tid, None)
                except Exception:
                    with contextlib.suppress(Exception):
                        self._run_on(tid)
            if not self._known and not self._traced():
                break
            if time.monotonic() > until:
                self._give_up()
                break
            time.sleep(_PAUSE)
        with contextlib.suppress(Exception):
            self._tracer.waker.stop()

    # -- which threads there are

    def _traced(self) -> list[int]:
        """All threads of the processes at hand that are traced by this one, as the kernel says."""
        tids = dict.fromkeys(self._tracer.tids)
        for pid in {process.pid for process in self._tracer.processes} | {_group(tid) for tid in self._known}:
            with contextlib.suppress(OSError):
                tids |= dict.fromkeys(proc.threads(pid))
        return [tid for tid in tids if _traced_here(tid)]

    def _look_for_threads(self) -> None:
        for tid in self._traced():
            self._know(tid)

    def _know(self, tid: int) -> None:
        if tid != self._tracer.waker.pid:
            self._known.setdefault(tid, _Effort())

    def _hear(self) -> None:
        """Take note of whatever has stopped or ended."""
        while True:
            try:
                tid, status = os.waitpid(-1, WAIT_FLAGS | os.WNOHANG)
            except ChildProcessError:
                return
            if not tid:
                return
            if is_stop(status):
                self._know(tid)
            else:
                self._ended(tid, status)

    def _ended(self, tid: int, status: int) -> None:
        self._known.pop(tid, None)
        self._tracer.note_end(tid, status)

    # -- one thread

    def _attend(self, tid: int) -> None:
        effort = self._known[tid]
        if in_hand(tid):
            self._bring_out(tid, effort)
        elif not alive(tid) or not _traced_here(tid):
            del self._known[tid]
        elif time.monotonic() - effort.asked > _AGAIN:
            effort.asked = time.monotonic()
            ptrace.call(ptrace.PTRACE_INTERRUPT, tid)

    def _run_on(self, tid: int) -> None:
        """Let a thread that could not be brought out here run on, to be tried elsewhere."""
        if in_hand(tid):
            effort = self._known[tid]
            self._hold_off(tid, effort)  # none may find it in code that is not the program's
            effort.asked = time.monotonic()
            ptrace.call(ptrace.PTRACE_CONT, tid)

    def _bring_out(self, tid: int, effort: _Effort) -> None:
        """Let a stopped thread go, from the next boundary between the program's instructions on."""
        info = ptrace.signal_info(tid)
        event = _event(info)
        if event in _ENDS:
            ptrace.call(ptrace.PTRACE_DETACH, tid)
            del self._known[tid]
            return
        if event not in (0, ptrace.PTRACE_EVENT_STOP):
            if event in _BIRTHS:
                self._know(ptrace.event_message(tid))
            ptrace.call(ptrace.PTRACE_INTERRUPT, tid)
            ptrace.call(ptrace.PTRACE_CONT, tid)
            return
        if not effort.out:
            if event == ptrace.PTRACE_EVENT_STOP:
                self._restart(tid)
            if self._absorb(tid, effort):
                info = ptrace.signal_info(tid)
            self._to_boundary(tid, effort, info)
            self._absorb(tid, effort)
            effort.out = True
        self._release(tid, effort)

    def _absorb(self, tid: int, effort: _Effort) -> bool:
        """Have a trap reported that is yet to be, before anything is executed: it would end the program when
        nobody traces it any more. Whether there was one. (Another stop that was asked for comes first.)"""
        found = False
        while trap_pending(tid):
            found = True
            self._hold_off(tid, effort)
            ptrace.call(ptrace.PTRACE_CONT, tid)
            self._next_stop(tid)
        return found

    def _restart(self, tid: int) -> None:
        """Have a system call begun again that gave up because its thread was told to stop."""
        registers = ptrace.get_registers(tid, self._isa.registers.structure)
        if self._isa.restart_call(registers):
            ptrace.set_registers(tid, registers)

    def _to_boundary(self, tid: int, effort: _Effort, info: ptrace.SignalInfo | None) -> None:
        isa, structure = self._isa, self._isa.registers.structure
        if self._lent_back(tid, effort):
            info = ptrace.signal_info(tid)
        registers = ptrace.get_registers(tid, structure)
        for _ in range(_STEPS):
            trapped, faulted = self._read(tid, effort, info, registers)
            if self._homing.home(tid, registers, trapped=trapped, faulted=faulted):
                self._homing.leave(tid, registers)
                return
            self._hold_off(tid, effort)
            ptrace.set_registers(tid, registers)
            ptrace.call(ptrace.PTRACE_SINGLESTEP, tid)
            self._next_stop(tid)
            info = ptrace.signal_info(tid)
            registers = ptrace.get_registers(tid, structure)
        raise RuntimeError(f"no boundary near {getattr(registers, isa.registers.pc):#x}")

    def _lent_back(self, tid: int, effort: _Effort) -> bool:
        """Give a thread back what is its own if it was just making a call for livepro: whether it was."""
        for process in self._tracer.processes:
            if tid in process.lent:
                effort.mask = process.lent[tid][1]
                return give_back(process, tid)
        return False

    def _read(
        self, tid: int, effort: _Effort, info: ptrace.SignalInfo | None, registers: Any
    ) -> tuple[bool, bool]:
        """What a stop says: whether a breakpoint of livepro's was run into, whether an instruction has
        failed. The program's own signals are kept for later."""
        if info is None or _event(info):
            return False, False
        if info.signo == signal.SIGTRAP and not sent(tid):
            breakpoint = self._isa.breakpoint
            if info.code != breakpoint.si_code:
                return False, False
            address = getattr(registers, self._isa.registers.pc) - breakpoint.pc_advance
            planted = self._homing.planted(tid, address)
            if planted:
                return True, False
            if planted is None or vm.read(tid, address, len(breakpoint.code)) != breakpoint.code:
                return False, False  # one that has been dealt with: the thread is elsewhere by now
        if info.signo in _FAULTS and info.code > 0:
            return False, True
        if effort.held is None:
            effort.held = info.signo, info
        return False, False

    def _hold_off(self, tid: int, effort: _Effort) -> None:
        """Have signals wait. A thread that has returned from a handler since has got another mask thereby."""
        mask = ptrace.signal_mask(tid)
        if mask != _ALL_BUT_FAULTS:
            effort.mask = mask
            ptrace.set_signal_mask(tid, _ALL_BUT_FAULTS)

    def _next_stop(self, tid: int) -> None:
        """Wait for a thread's next stop. Raises _Ended, and TimeoutError if it runs for too long."""
        until = time.monotonic() + _STEP_TIME
        while time.monotonic() < until:
            found, status = os.waitpid(tid, WALL | os.WNOHANG)
            if found and not is_stop(status):
                self._ended(tid, status)
                raise _Ended
            if found:
                if stop_event(status) in _ENDS:
                    ptrace.call(ptrace.PTRACE_DETACH, tid)
                    self._known.pop(tid, None)
                    raise _Ended
                return
            os.sched_yield()
        raise TimeoutError

    def _release(self, tid: int, effort: _Effort) -> None:
        """Let a thread go that is in the program's own code with its own registers."""
        others = [other for other in self._known if other != tid]
        with contextlib.suppress(Exception):
            self._homing.last(tid, others)
        held = effort.held or self._homing.in_hand(tid)
        mask = self._homing.mask(tid)
        if mask is None:
            mask = effort.mask
        info = ptrace.signal_info(tid)
        if held is not None and (info is None or _event(info)):
            # A signal can only be delivered from a stop that a signal has brought about: a step's.
            self._hold_off(tid, effort)
            mask = effort.mask if mask is None else mask
            ptrace.call(ptrace.PTRACE_SINGLESTEP, tid)
            self._next_stop(tid)
            info = ptrace.signal_info(tid)
        if mask is not None:
            ptrace.set_signal_mask(tid, mask)
        number = 0
        if held is not None and info is not None and not _event(info):
            number = held[0]
            if held[1] is not None:
                ptrace.set_signal_info(tid, held[1])
        ptrace.call(ptrace.PTRACE_DETACH, tid, 0, number)
        del self._known[tid]

    def _give_up(self) -> None:
        for tid in self._known:
            self.lost.append(tid)
            with contextlib.suppress(OSError):
                if in_hand(tid):
                    ptrace.call(ptrace.PTRACE_DETACH, tid)


def _event(info: ptrace.SignalInfo | None) -> int:
    """The ptrace event of a stop (0: a signal's, or a group's): the second byte of its si_code."""
    return 0 if info is None or info.code < 0 else info.code >> 8


def _group(tid: int) -> int:
    try:
        return int(proc.status_field(tid, "Tgid"))
    except (OSError, KeyError):
        return tid


def _traced_here(tid: int) -> bool:
    """Whether the calling thread traces a thread."""
    with contextlib.suppress(OSError):
        return proc.tracer(tid) == threading.get_native_id() and alive(tid)
    return False
