"""State translation: from where a signal finds a thread in a cache to a boundary between the program's
instructions.

Most often it is at one. Within an emitted sequence the tracer carries out the
rest of it; what touches the program's memory the thread is stepped over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.fragment import Place
from livepro.engines.translate.codecache.stop_reasons import (
    BudgetStop,
    ChangedStop,
    ChunkStop,
    MissStop,
    NativeStop,
    Stop,
)
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.signals.deferring import ALL_BUT_FAULTS, FAULTS, Deferral
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.running import ThreadRunner
from livepro.engines.translate.threads.table import ProgramCounter
from livepro.engines.translate.translator.backend import Backend
from livepro.isa.base import Isa
from livepro.linux import ptrace

_FARTHEST = (
    10_000  # emitted instructions to a boundary; a comparison of source bytes has five for eight bytes
)


def may_be_fault(number: int) -> bool:
    """Whether a signal can be one that an instruction raises."""
    return number in FAULTS


def is_fault(number: int, info: ptrace.SignalInfo | None) -> bool:
    """Whether a signal has been raised by an instruction."""
    return number in FAULTS and info is not None and info.code > 0


class StateTranslation:
    """Brings threads to boundaries. `deliver` is told of a thread that is at one: its own registers, and
    the program's address."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        pc: ProgramCounter,
        ledger: Ledger,
        deferral: Deferral,
        runner: ThreadRunner,
        deliver: Callable[[TranslatedThread, Any, int], None],
    ) -> None:
        self._isa = isa
        self._backend = backend
        self._pc_advance = pc.advance
        self._ledger = ledger
        self._deferral = deferral
        self._runner = runner
        self._deliver = deliver

    def settle(self, state: TranslatedThread, registers: Any, *, fault: bool = False) -> None:
        """Deliver the signal in hand at the next boundary, or step towards it. `fault`: the
        instruction that the thread is at has been attempted."""
        space, thread = state.space, state.thread
        name = self._isa.registers.pc
        if not space.memory.holds(getattr(registers, name)):
            # A frame could not be built: the thread is where that signal was to interrupt it.
            self._deliver(state, registers, getattr(registers, name))
            return
        for _ in range(_FARTHEST):
            pc = getattr(registers, name)
            place = space.memory.locate(pc)
            if place is not None:
                begin, end = place.block.details.retreat
                if begin <= pc - place.block.start < end:
                    self._deliver_before_return(state, place, registers, fault=fault)
                    return
                if place.exact or fault:
                    self._deliver_at(state, place, pc, registers)
                    return
            else:
                target = space.handlers.handlers.get(pc, space.linker.exits.get(pc))
                if target is not None:
                    self._deliver(state, registers, target)
                    return
            stop = space.memory.stop_at(pc)
            if stop is not None:
                if self._arrived(state, stop, registers):
                    return
            elif not self._backend.roll_forward(registers, state.words, state.area_address, thread.read):
                break
        if fault:
            raise RuntimeError(f"fault in the translator's own code at {getattr(registers, name):#x}")
        thread.set_registers(registers)
        self._step_on(state)

    def _deliver_at(self, state: TranslatedThread, place: Place, pc: int, registers: Any) -> None:
        block = place.block
        if place.at_rep:
            self._ledger.refund(state, place, registers)
        borrowed = block.details.borrowed.get(pc - block.start)
        if borrowed is not None:
            self._backend.restore_spills(registers, state.words, borrowed)
        if state.held is not None and is_fault(*state.held):
            # A fault that names the instruction (SIGFPE, SIGILL) names the program's.
            info = state.held[1]
            if info.address == pc:
                info.address = place.pc
        if place.behind_syscall:
            self._backend.behind_syscall(registers, place.pc)
            self._backend.keep_own(registers, state.words)
        self._ledger.record_partial(state, block, place.executed, counted=place.counted)
        if place.entered and state.held is not None:
            state.frame = (pc, place.pc)
            self._deliver(state, registers, pc)
        else:
            self._deliver(state, registers, place.pc)

    def _deliver_before_return(
        self, state: TranslatedThread, place: Place, registers: Any, *, fault: bool
    ) -> None:
        """The thread prepares a return from a signal handler: it may as well not have begun."""
        self._backend.retreat(registers, state.words)
        state.words[layout.DEFERRING // 8] = state.deferred != 0
        block = place.block
        index = len(block.source.facts) - 1
        if fault and state.held is not None and is_fault(*state.held):
            # There is no frame: let the kernel find that out.
            state.held = None
            state.thread.set_registers(registers)
            self._runner.native.begin(state, NativeStop(block, index, 0, place.counted))
            return
        self._ledger.record_partial(state, block, index, counted=place.counted)
        self._deliver(state, registers, block.source.pc + block.source.offsets[index])

    def _arrived(self, state: TranslatedThread, stop: Stop, registers: Any) -> bool:
        """The thread is at a stop in the cache. Whether the signal has been delivered."""
        tid = state.thread.tid
        if isinstance(stop, BudgetStop):
            self._runner.budget_spent(state, stop)
            setattr(registers, self._isa.registers.pc, stop.resume)
            return False
        if isinstance(stop, ChunkStop):
            self._runner.chunk_full(state, stop)
            if state.trace is not None:
                state.trace.gone_on()
            self._backend.lend(registers, state.words)
            setattr(registers, self._isa.registers.pc, stop.resume)
            return False
        if isinstance(stop, NativeStop):
            # The boundary is the native instruction itself.
            block = stop.block
            self._ledger.record_partial(state, block, stop.index, counted=stop.counted)
            target = block.source.pc + block.source.offsets[stop.index]
        elif isinstance(stop, MissStop):
            state.thread.set_registers(registers)
            target = self._backend.branch_target(tid)
            self._backend.restore_spills(registers, state.words)
        elif isinstance(stop, ChangedStop):
            self._backend.restore_spills(registers, state.words)
            target = self._runner.forget(state, stop)
        else:
            target = stop.pc
        self._deliver(state, registers, target)
        return True

    def _step_on(self, state: TranslatedThread) -> None:
        """Step towards a boundary. Other signals wait in the kernel, as they are, until the one
        in hand is delivered: each would stop the thread before it has made the step."""
        tid = state.thread.tid
        state.mode = Mode.SETTLING
        self._deferral.note_return(state)
        if state.mask is None:
            if state.held is not None:
                number, info = state.held
                state.held = number, info or ptrace.signal_info(tid)
            state.mask = ptrace.signal_mask(tid)
            ptrace.set_signal_mask(tid, ALL_BUT_FAULTS)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, tid)

    def stepped_on(self, state: TranslatedThread) -> None:
        """One step towards a boundary has been made, or a stop been run into."""
        thread = state.thread
        registers = thread.registers()
        info = ptrace.signal_info(thread.tid)
        if info is not None and info.code == self._isa.breakpoint.si_code:
            name = self._isa.registers.pc
            setattr(registers, name, getattr(registers, name) - self._pc_advance)
        self.settle(state, registers)

    def signalled(self, state: TranslatedThread, number: int, caught: bool) -> None:
        """A signal that cannot be held off, with another in hand."""
        tid = state.thread.tid
        if is_fault(number, ptrace.signal_info(tid)):
            # A boundary after all: the instruction will fault again when it is returned to.
            self.settle(state, state.thread.registers(), fault=True)
            return
        if caught:
            # A fault's signal, but sent. One that is blocked when a tracer lets it through
            # goes back into the queue, with all it carries (ptrace_signal in kernel/signal.c).
            ptrace.set_signal_mask(tid, ptrace.signal_mask(tid) | 1 << number - 1)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, tid, 0, number)
