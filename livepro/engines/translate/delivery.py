"""Signals for translated threads: delivered with the program's own registers.

At a signal-delivery-stop the thread is somewhere in a cache. It is brought to
a boundary between the program's instructions (by stepping on, if need be), put
at the program's own address, and the kernel builds the frame; the handler's
first instruction is then entered through the cache again.
"""

from __future__ import annotations

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
# A fault that finds its signal blocked ends the program (force_sig_info_to_task).
_ALL_BUT_FAULTS = (1 << 64) - 1 & ~sum(1 << number - 1 for number in _FAULTS)


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
            if state.frame is not None and self._backend.own_frame:
                self._backend.own_frame(thread, *state.frame)
                state.frame = None
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
        caught = self._caught(thread, number)
        if state.mode is Mode.SETTLING:
            self._signalled_settling(state, number, caught)
            return
        if state.mode in (Mode.NATIVE, Mode.DELIVERING):
            self._signalled_natively(state, number, caught)
            return
        if not caught:
            ptrace.call(ptrace.PTRACE_CONT, thread.tid, 0, number)
            return
        info = ptrace.signal_info(thread.tid)
        state.held = (number, info)
        self._deliver_or_settle(state, fault=self._is_fault(number, info))

    @staticmethod
    def _is_fault(number: int, info: ptrace.SignalInfo | None) -> bool:
        return number in _FAULTS and info is not None and info.code > 0

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

    def _settle(self, state: TranslatedThread) -> None:
        """Step towards a boundary. Other signals wait in the kernel, as they are, until the one
        in hand is delivered: each would stop the thread before it has made the step."""
        tid = state.thread.tid
        state.mode = Mode.SETTLING
        if state.mask is None:
            state.mask = ptrace.signal_mask(tid)
            ptrace.set_signal_mask(tid, _ALL_BUT_FAULTS)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, tid)

    def _signalled_settling(self, state: TranslatedThread, number: int, caught: bool) -> None:
        """A signal that cannot be held off, with another in hand."""
        tid = state.thread.tid
        if self._is_fault(number, ptrace.signal_info(tid)):
            # A boundary after all: the instruction will fault again when it is returned to.
            self._deliver_or_settle(state, fault=True)
            return
        if caught:
            # A fault's signal, but sent. One that is blocked when a tracer lets it through
            # goes back into the queue, with all it carries (ptrace_signal in kernel/signal.c).
            ptrace.set_signal_mask(tid, ptrace.signal_mask(tid) | 1 << number - 1)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, tid, 0, number)

    def _deliver_or_settle(self, state: TranslatedThread, *, fault: bool = False) -> None:
        """Deliver the signal in hand if the thread is at a boundary, else step on."""
        thread = state.thread
        pc = self._pc(thread.tid)
        place = state.space.locate(pc)
        if place is None and fault:
            raise RuntimeError(f"fault in the translator's own code at {pc:#x}")
        if place is None or not (place.exact or fault):
            self._settle(state)
            return
        registers = thread.registers()
        block = place.block
        within = pc - block.start
        if place.at_rep:
            self._refund(state, place, registers)
        if within in block.details.borrowed:
            self._backend.give_back(registers, state.words, block.details.borrowed[within])
        if state.held is not None and self._is_fault(*state.held):
            self._place_fault(state.held[1], place.pc, pc)
        if place.behind_syscall:
            self._backend.behind_syscall(registers, place.pc)
        self._uncount(state, block, place.executed, counted=place.counted)
        if place.entered:
            state.frame = (pc, place.pc)
            self._deliver(state, registers, pc)
        else:
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
        if state.mask is not None:
            ptrace.set_signal_mask(thread.tid, state.mask)
            state.mask = None
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
        stop = state.space.stop_at(pc)
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
