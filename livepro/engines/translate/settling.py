"""From where a signal finds a thread in a cache to a boundary between the program's instructions.

Most often it is at one. Within an emitted sequence the tracer carries out the
rest of it; what touches the program's memory the thread is stepped over.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.cache import Place, Stop
from livepro.engines.translate.deferring import ALL_BUT_FAULTS, FAULTS
from livepro.engines.translate.running import CacheRunner
from livepro.engines.translate.thread import Mode, TranslatedThread
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


class Settler(CacheRunner):
    """Brings threads with a signal in hand to boundaries."""

    @abstractmethod
    def _deliver(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Deliver the signal in hand to a thread whose own registers are `registers`, at the
        program's address `pc`."""

    def _deliver_or_settle(self, state: TranslatedThread, registers: Any, *, fault: bool = False) -> None:
        """Deliver the signal in hand at the next boundary, or step towards it. `fault`: the
        instruction that the thread is at has been attempted."""
        space, thread = state.space, state.thread
        name = self.isa.registers.pc
        if not space.holds(getattr(registers, name)):
            # A frame could not be built: the thread is where that signal was to interrupt it.
            self._deliver(state, registers, getattr(registers, name))
            return
        for _ in range(_FARTHEST):
            pc = getattr(registers, name)
            place = space.locate(pc)
            if place is not None:
                begin, end = place.block.details.retreat
                if begin <= pc - place.block.start < end:
                    self._deliver_before_return(state, place, registers, fault=fault)
                    return
                if place.exact or fault:
                    self._deliver_at(state, place, pc, registers)
                    return
            else:
                target = space.handlers.get(pc, space.exits.get(pc))
                if target is not None:
                    self._deliver(state, registers, target)
                    return
            stop = space.stop_at(pc)
            if stop is not None:
                if self._arrived(state, stop, registers):
                    return
            elif not self._backend.catch_up(registers, state.words, state.area_address, thread.read):
                break
        if fault:
            raise RuntimeError(f"fault in the translator's own code at {getattr(registers, name):#x}")
        thread.set_registers(registers)
        self._step_on(state)

    def _deliver_at(self, state: TranslatedThread, place: Place, pc: int, registers: Any) -> None:
        block = place.block
        if place.at_rep:
            self._refund(state, place, registers)
        borrowed = block.details.borrowed.get(pc - block.start)
        if borrowed is not None:
            self._backend.give_back(registers, state.words, borrowed)
        if state.held is not None and is_fault(*state.held):
            # A fault that names the instruction (SIGFPE, SIGILL) names the program's.
            info = state.held[1]
            if info.address == pc:
                info.address = place.pc
        if place.behind_syscall:
            self._backend.behind_syscall(registers, place.pc)
        self._uncount(state, block, place.executed, counted=place.counted)
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
            self._begin_native(state, Stop("native", block, 0, index, 0, place.counted))
            return
        self._uncount(state, block, index, counted=place.counted)
        self._deliver(state, registers, block.source.pc + block.source.offsets[index])

    def _arrived(self, state: TranslatedThread, stop: Stop, registers: Any) -> bool:
        """The thread is at a stop in the cache. Whether the signal has been delivered."""
        tid = state.thread.tid
        target = stop.pc
        if stop.kind == "budget":
            self._budget_spent(state, stop)
            setattr(registers, self.isa.registers.pc, stop.resume)
            return False
        if stop.kind == "full":
            self._full(state, stop)
            setattr(registers, self.isa.registers.pc, stop.resume)
            return False
        if stop.kind == "native":
            # The boundary is the native instruction itself.
            block = stop.block
            assert block is not None
            self._uncount(state, block, stop.index, counted=stop.counted)
            target = block.source.pc + block.source.offsets[stop.index]
        elif stop.kind == "miss":
            state.thread.set_registers(registers)
            target = self._backend.branch_target(tid)
            self._backend.give_back(registers, state.words)
        elif stop.kind == "changed":
            self._backend.give_back(registers, state.words)
            target = self._forget(state, stop)
        self._deliver(state, registers, target)
        return True

    def _step_on(self, state: TranslatedThread) -> None:
        """Step towards a boundary. Other signals wait in the kernel, as they are, until the one
        in hand is delivered: each would stop the thread before it has made the step."""
        tid = state.thread.tid
        state.mode = Mode.SETTLING
        self._note_return(state)
        if state.mask is None:
            if state.held is not None:
                number, info = state.held
                state.held = number, info or ptrace.signal_info(tid)
            state.mask = ptrace.signal_mask(tid)
            ptrace.set_signal_mask(tid, ALL_BUT_FAULTS)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, tid)

    def _stepped_on(self, state: TranslatedThread) -> None:
        """One step towards a boundary has been made, or a stop been run into."""
        thread = state.thread
        registers = thread.registers()
        info = ptrace.signal_info(thread.tid)
        if info is not None and info.code == self.isa.breakpoint.si_code:
            name = self.isa.registers.pc
            setattr(registers, name, getattr(registers, name) - self._pc_advance)
        self._deliver_or_settle(state, registers)

    def _signalled_settling(self, state: TranslatedThread, number: int, caught: bool) -> None:
        """A signal that cannot be held off, with another in hand."""
        tid = state.thread.tid
        if is_fault(number, ptrace.signal_info(tid)):
            # A boundary after all: the instruction will fault again when it is returned to.
            self._deliver_or_settle(state, state.thread.registers(), fault=True)
            return
        if caught:
            # A fault's signal, but sent. One that is blocked when a tracer lets it through
            # goes back into the queue, with all it carries (ptrace_signal in kernel/signal.c).
            ptrace.set_signal_mask(tid, ptrace.signal_mask(tid) | 1 << number - 1)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, tid, 0, number)

    def _refund(self, state: TranslatedThread, place: Place, registers: Any) -> None:
        """Iterations charged for a rep instruction that has them yet to do."""
        if state.trace is not None:
            state.trace.interrupted(registers)
        source = place.block.source
        encoding = source.code[source.offsets[place.index] : source.offsets[place.index + 1]]
        at = layout.REP_ITERATIONS // 8
        state.words[at] -= np.uint64(self.isa.rep_count(encoding, registers))
