"""Signals for translated threads: delivered with the program's own registers.

At a signal-delivery-stop the thread is somewhere in a cache. It is brought to
a boundary between the program's instructions (by stepping on, if need be), put
at the program's own address, and the kernel builds the frame; the handler's
first instruction is then entered through the cache again.
"""

from __future__ import annotations

import ctypes
import signal
from typing import Any

import numpy as np

from livepro.engines.base import run_free
from livepro.engines.translate import layout
from livepro.engines.translate.cache import Place, Stop
from livepro.engines.translate.running import CacheRunner
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.linux import proc, ptrace
from livepro.tracee import TracedThread

# si_code of ptrace_notify(SIGTRAP) in signal_setup_done (kernel/signal.c).
_HANDLER_ENTERED = signal.SIGTRAP

_FAULTS = frozenset((signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP))
_TGKILL = 234  # arch/x86/entry/syscalls/syscall_64.tbl


class SignalDelivery(CacheRunner):
    """Answers the stops that the tracer tells of."""

    def trapped(self, thread: TracedThread) -> None:
        state = self._states.get(thread.tid)
        if state is None:
            run_free(thread)
            return
        info = ptrace.signal_info(thread.tid)
        kind = info.code if info is not None else 0
        if state.mode is Mode.DELIVERING and kind == _HANDLER_ENTERED:
            if self._caught(thread, signal.SIGTRAP):
                # A trap that finds SIGTRAP blocked resets its action (force_sig_info_to_task
                # in kernel/signal.c): a handler of the program's own would be lost by a stop.
                ptrace.unblock(thread.tid, signal.SIGTRAP)
            self._leave_native(state)
            self._enter(state, self._pc(thread.tid))
        elif state.mode is Mode.SETTLING:
            self._settled(state)
        elif self._backend.stepped(info) and state.mode in (Mode.NATIVE, Mode.DELIVERING):
            if self._pc(thread.tid) == state.at:
                # Nothing executed yet (on the way out of a system call), or one iteration of a rep.
                ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid)
            elif state.mode is Mode.DELIVERING:
                state.native = None
                self._end_native(state)
            elif state.native is not None and state.native.raises:
                self.signalled(thread, signal.SIGTRAP)
            else:
                self._end_native(state)
        else:
            self.signalled(thread, signal.SIGTRAP)

    def signalled(self, thread: TracedThread, number: int) -> None:
        state = self._states.get(thread.tid)
        if state is None:
            run_free(thread, number)
            return
        if state.mode is Mode.SETTLING:
            # A fault on the way to a boundary is the program's own, and comes first.
            self._requeue(state)
        caught = self._caught(thread, number)
        if state.mode in (Mode.NATIVE, Mode.DELIVERING):
            self._signalled_natively(state, number, caught)
            return
        if not caught:
            ptrace.call(ptrace.PTRACE_CONT, thread.tid, 0, number)
            return
        info = ptrace.signal_info(thread.tid)
        fault = number in _FAULTS and info is not None and info.code > 0
        state.held = (number, info)
        self._deliver_or_settle(state, fault=fault)

    def _caught(self, thread: TracedThread, number: int) -> bool:
        """Whether the program has a handler for the signal.

        Known until it next calls sigaction. A handler that resets itself
        (SA_RESETHAND) may be thought to be there when it is not: then the
        signal's default action is taken at the program's own address.
        """
        mask = self._handlers.get(thread.process)
        if mask is None:
            mask = self._handlers[thread.process] = int(proc.status_field(thread.tid, "SigCgt"), 16)
        return bool(mask >> number - 1 & 1)

    def _requeue(self, state: TranslatedThread) -> None:
        """Send the signal in hand once more, to be delivered later."""
        if state.held is not None:
            ctypes.CDLL(None).syscall(_TGKILL, state.thread.process.pid, state.thread.tid, state.held[0])
            state.held = None

    def _deliver_or_settle(self, state: TranslatedThread, *, fault: bool = False) -> None:
        """Deliver the signal in hand if the thread is at a boundary, else step on."""
        thread = state.thread
        pc = self._pc(thread.tid)
        place = state.space.locate(pc)
        if place is None and fault:
            raise RuntimeError(f"fault in the translator's own code at {pc:#x}")
        if place is None or not (place.exact or fault):
            state.mode = Mode.SETTLING
            ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid)
            return
        registers = thread.registers()
        block = place.block
        within = pc - block.start
        if place.at_rep:
            self._refund(state, place, registers)
        if within in block.details.borrowed:
            self._backend.give_back(registers, state.words)
        if fault and state.held is not None:
            self._place_fault(state.held[1], place.pc, pc)
        if place.behind_syscall:
            self._backend.behind_syscall(registers, place.pc)
        self._uncount(state, block, place.index, counted=place.counted)
        self._deliver(state, registers, place.pc)

    @staticmethod
    def _place_fault(info: ptrace.SignalInfo, pc: int, copied: int) -> None:
        """A fault that names the instruction (SIGFPE, SIGILL) names the program's."""
        if info.address == copied:
            info.address = pc

    def _deliver(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let the kernel build the signal frame with the program's own registers."""
        assert state.held is not None
        number, info = state.held
        state.held = None
        thread = state.thread
        setattr(registers, self.isa.registers.pc, pc)
        self._backend.set_own(thread.tid, registers, state.words, state.program_base)
        if info is not None:
            ptrace.set_signal_info(thread.tid, info)
        state.mode = Mode.DELIVERING
        state.at = pc
        state.before = registers
        ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)

    def _settled(self, state: TranslatedThread) -> None:
        """One step towards a boundary has been made, or a stop been run into."""
        tid = state.thread.tid
        pc = self._pc(tid) - self._pc_advance
        stop = state.space.stops.get(pc)
        if stop is None and pc in state.space.exits:
            stop = Stop("exit", None, state.space.exits[pc])
        info = ptrace.signal_info(tid)
        if stop is not None and info is not None and info.code == self.isa.breakpoint.si_code:
            target = stop.pc
            if stop.kind == "miss":
                registers = state.thread.registers()
                target = self._backend.branch_target(tid)
                self._backend.give_back(registers, state.words)
                state.thread.set_registers(registers)
            elif stop.kind == "changed":
                registers = state.thread.registers()
                self._backend.give_back(registers, state.words)
                state.thread.set_registers(registers)
                target = self._forget(state, stop)
            elif stop.kind == "native":
                # The boundary is the native instruction itself.
                block = stop.block
                assert block is not None
                registers = state.thread.registers()
                self._uncount(state, block, stop.index, counted=stop.counted)
                self._deliver(state, registers, block.source.pc + block.source.offsets[stop.index])
                return
            elif stop.kind == "budget":
                self._budget_spent(state, stop)
                self._write_pc(tid, stop.resume)
                self._deliver_or_settle(state)
                return
            # At an exit: the boundary is the target.
            self._deliver(state, state.thread.registers(), target)
            return
        self._deliver_or_settle(state)

    def _refund(self, state: TranslatedThread, place: Place, registers: Any) -> None:
        """Iterations charged for a rep instruction that has them yet to do."""
        source = place.block.source
        encoding = source.code[source.offsets[place.index] : source.offsets[place.index + 1]]
        at = layout.REP_ITERATIONS // 8
        state.words[at] -= np.uint64(self.isa.rep_count(encoding, registers))

    def _signalled_natively(self, state: TranslatedThread, number: int, caught: bool) -> None:
        """A signal at an instruction that is being stepped at its own address."""
        thread = state.thread
        if not caught:
            ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)
            return
        pc = self._pc(thread.tid)
        stop, state.native = state.native, None
        if stop is not None and stop.block is not None:
            self._uncount(state, stop.block, stop.index + (pc != state.at), counted=stop.counted)
        state.mode = Mode.DELIVERING
        state.at = pc
        ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)

    def interrupted(self, thread: TracedThread) -> None:
        pass

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        state = self._states.get(thread.tid)
        request = (
            ptrace.PTRACE_CONT if state is None or state.mode is Mode.RUNNING else ptrace.PTRACE_SINGLESTEP
        )
        ptrace.call(request, thread.tid, 0, number)
