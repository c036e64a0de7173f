"""Signals for translated threads: delivered with the program's own registers.

At a signal-delivery-stop the thread is somewhere in a cache. It is brought to
a boundary between the program's instructions and put at the program's own
address, and the kernel builds the frame. It then enters the handler in the
cache (`actions`); where it might not, the thread is stepped, and brought there
from the handler's own first instruction.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from livepro.engines.base import run_free
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.signals.deferring import Deferral
from livepro.engines.translate.signals.settling import StateTranslation, is_fault, may_be_fault
from livepro.engines.translate.signals.trapping import TrapHandlers
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.room import CacheRoom
from livepro.engines.translate.threads.running import ThreadRunner
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.engines.traps import IgnoredTraps
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.model import Flow
from livepro.tracee import TracedThread, Tracer

# si_code of ptrace_notify(SIGTRAP) in signal_setup_done (kernel/signal.c).
_HANDLER_ENTERED = signal.SIGTRAP


class SignalDelivery:
    """Answers the stops that the tracer tells of. `part` lets a thread go that has stopped, if that can be
    done now."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        table: ThreadTable,
        pc: ProgramCounter,
        ledger: Ledger,
        deferral: Deferral,
        syscalls: SyscallMonitor,
        room: CacheRoom,
        runner: ThreadRunner,
        traps: IgnoredTraps,
        handlers: TrapHandlers,
        part: Callable[[TracedThread], bool],
    ) -> None:
        self._isa = isa
        self._backend = backend
        self._tracer = tracer
        self._table = table
        self._pc = pc
        self._ledger = ledger
        self._deferral = deferral
        self._syscalls = syscalls
        self._room = room
        self._runner = runner
        self._traps = traps
        self._handlers = handlers
        self._part = part
        self.translation = StateTranslation(isa, backend, pc, ledger, deferral, runner, self.deliver)

    def trapped(self, thread: TracedThread) -> None:
        state = self._table.states.get(thread.tid)
        if state is None:
            run_free(thread)
            return
        info = ptrace.signal_info(thread.tid)
        kind = info.code if info is not None else 0
        if state.mode is Mode.DELIVERING and kind == _HANDLER_ENTERED:
            self._entered_handler(state)
        elif state.mode is Mode.SETTLING:
            self.translation.stepped_on(state)
        elif state.mode in (Mode.NATIVE, Mode.DELIVERING) and (
            self._backend.stepped(info) or not self._traps.delivered(thread, signal.SIGTRAP)
        ):
            if self._tracer.leaving and self._will_restart(state) and self._part(thread):
                return  # it might wait for ever
            if self._pc.of(thread.tid) == state.at or self._will_restart(state):
                # Nothing executed yet (on the way out of a system call), one iteration of a rep, or
                # a call that a signal has interrupted, which the kernel has yet to begin again.
                ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid)
            elif state.mode is Mode.DELIVERING:
                state.native = None
                self._runner.native.end(state)
            elif state.native is not None and state.native.raises:
                self.signalled(thread, signal.SIGTRAP)
            else:
                self._runner.native.end(state)
        else:
            self.signalled(thread, signal.SIGTRAP)

    def _will_restart(self, state: TranslatedThread) -> bool:
        """Whether a thread is on its way out of a system call that may be begun again: the kernel will
        wind its pc back, wherever that is by then."""
        stop = state.native
        if state.mode is not Mode.NATIVE or stop is None:
            return False
        if stop.block.source.facts[stop.index].flow is not Flow.SYSCALL:
            return False
        return self._isa.rewind_call(state.thread.registers())

    def signalled(self, thread: TracedThread, number: int) -> None:
        if number == signal.SIGTRAP:
            self._handlers.tell(thread, self._table.spaces.get(thread.process))
        state = self._table.states.get(thread.tid)
        if state is None:
            run_free(thread, number)
            return
        tid = thread.tid
        state.taking = 0
        caught = self._syscalls.actions[thread.process].caught(tid, number)
        if state.mode is Mode.SETTLING:
            self.translation.signalled(state, number, caught)
            return
        if not self._traps.delivered(thread, number):
            number = 0
        if state.mode in (Mode.NATIVE, Mode.DELIVERING):
            self._signalled_natively(state, number, caught)
            return
        if not caught:
            state.taking = number
            ptrace.call(ptrace.PTRACE_CONT, tid, 0, number)
            return
        info = ptrace.signal_info(tid) if may_be_fault(number) else None
        fault = is_fault(number, info)
        registers = thread.registers()
        if self._deferral.starves(state, getattr(registers, self._isa.registers.pc)) and not fault:
            self._deferral.begin(state, number)
            return
        state.held = (number, info)
        self.translation.settle(state, registers, fault=fault)

    def deliver(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let the kernel build the signal frame with the program's own registers."""
        if self._tracer.leaving and state.held is None:
            self._runner.park(state, registers, pc)
            return
        assert state.held is not None
        number, info = state.held
        thread = state.thread
        tid = thread.tid
        self._deferral.restore_mask(state)
        if state.trace is not None:
            state.trace.goes_on(pc)
        setattr(registers, self._isa.registers.pc, pc)
        if info is not None:
            ptrace.set_signal_info(tid, info)
        if self._syscalls.actions[thread.process].quick(number):
            thread.set_registers(registers)
            state.mode = Mode.RUNNING
            state.taking = number
            ptrace.call(ptrace.PTRACE_CONT, tid, 0, number)
            state.held = None
            if not is_fault(number, info):
                self._room.expect(state, pc)  # while the handler runs
            return
        self._backend.set_own(tid, registers, state.words, state.program_base)
        state.mode = Mode.DELIVERING
        state.at = pc
        state.before = registers
        ptrace.call(ptrace.PTRACE_SINGLESTEP, tid, 0, number)
        state.held = None

    def _entered_handler(self, state: TranslatedThread) -> None:
        """The kernel has built a frame, and the thread is at the handler's first instruction."""
        thread = state.thread
        actions = self._syscalls.actions[thread.process]
        if actions.caught(thread.tid, signal.SIGTRAP):
            # A trap that finds SIGTRAP blocked resets its action (force_sig_info_to_task
            # in kernel/signal.c): a handler of the program's own would be lost by a stop.
            ptrace.unblock(thread.tid, signal.SIGTRAP)
        if state.frame is not None and self._backend.own_frame:
            self._backend.own_frame(thread, *state.frame)
            state.frame = None
        actions.entered(thread.tid)
        self._runner.native.leave(state)
        pc = self._pc.of(thread.tid)
        if pc in state.space.handlers.handlers:
            self._runner.go(state, pc)
        else:
            self._runner.enter(state, pc)

    def _signalled_natively(self, state: TranslatedThread, number: int, caught: bool) -> None:
        """A signal at an instruction that is being stepped at its own address."""
        if caught:
            self._runner.native.take_off_iterations(state)
        thread = state.thread
        if not caught:
            ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)
            return
        self._deferral.restore_mask(state)
        pc = self._pc.of(thread.tid)
        if state.change is not None:
            self._syscalls.action_changed(state, made=pc != state.at)
        self._syscalls.unaltered_made(state, made=pc != state.at)
        stop, state.native = state.native, None
        if stop is not None:
            self._ledger.record_partial(
                state, stop.block, stop.index + (pc != state.at), counted=stop.counted
            )
        if state.trace is not None:
            state.trace.goes_on(pc)
        state.mode = Mode.DELIVERING
        state.at = pc
        ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)

    def interrupted(self, thread: TracedThread) -> None:
        state = self._table.states.get(thread.tid)
        if state is None or state.mode is Mode.SETTLING:
            return
        if state.mode is not Mode.RUNNING or not self._deferral.extend(state, self._pc.of(thread.tid)):
            self._deferral.restore_mask(state)

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        state = self._table.states.get(thread.tid)
        request = (
            ptrace.PTRACE_CONT if state is None or state.mode is Mode.RUNNING else ptrace.PTRACE_SINGLESTEP
        )
        ptrace.call(request, thread.tid, 0, number)
