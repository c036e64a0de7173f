"""Instructions that threads execute at their own place, one step at a time, with the program's registers.

So system calls that change mappings, traps and far transfers are executed, and code for which there
is no room in the cache.
"""

from __future__ import annotations

from typing import Any, Protocol

from livepro.engines.debuggers import Debuggers
from livepro.engines.inprocess import InProcess
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.stop_reasons import NativeStop
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.signals.deferring import Deferral
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.room import CacheRoom
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ProgramCounter
from livepro.engines.translate.translator.backend import Backend
from livepro.isa.base import Isa, Quirk
from livepro.linux import ptrace
from livepro.model import Flow
from livepro.tracee import TracedThread, Tracer


class Onward(Protocol):
    """Where a thread goes on that is at a boundary between the program's instructions."""

    def go(self, state: TranslatedThread, address: int) -> None:
        """Let a thread run on from a cache address."""

    def enter(self, state: TranslatedThread, pc: int) -> None:
        """Let a thread run on from the program's address `pc`, where a block starts."""

    def park(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let a thread go for good at the program's address `pc`, with these registers."""


class NativeStepper:
    """Has threads execute single instructions at their own place."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        pc: ProgramCounter,
        ledger: Ledger,
        deferral: Deferral,
        syscalls: SyscallMonitor,
        room: CacheRoom,
        inprocess: InProcess,
        debuggers: Debuggers,
        onward: Onward,
    ) -> None:
        self._isa = isa
        self._backend = backend
        self._tracer = tracer
        self._pc = pc
        self._ledger = ledger
        self._deferral = deferral
        self._syscalls = syscalls
        self._room = room
        self._inprocess = inprocess
        self._debuggers = debuggers
        self._onward = onward
        self._quirks: dict[bytes, Quirk] = {}  # of instructions that have been stepped

    def begin(self, state: TranslatedThread, stop: NativeStop) -> None:
        """Step the instruction that the stop stands for at its own address."""
        block = stop.block
        pc = block.source.pc + block.source.offsets[stop.index]
        calls = block.source.facts[stop.index].flow is Flow.SYSCALL
        if self._tracer.leaving or (calls and self._debuggers.take(state.thread, state.thread.registers())):
            self._ledger.record_partial(state, block, stop.index, counted=stop.counted)
            self._onward.park(state, state.thread.registers(), pc)
            return
        state.native = stop
        self.prepare(state, pc)
        if state.trace is not None:
            state.trace.stepping(block, stop.index, state.thread.registers)
        if calls:
            self._syscalls.before(state)
        elif state.mask is not None:
            self._deferral.restore_mask(state)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, state.thread.tid)

    def step(self, state: TranslatedThread, pc: int) -> None:
        """Execute one instruction at the program's address `pc`; `state.native` says what is known of it."""
        self.prepare(state, pc)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, state.thread.tid)

    def step_uncopied(self, state: TranslatedThread, pc: int) -> None:
        """Execute the instruction at the program's address `pc`, for which there is no room in the cache
        (or it cannot be executed: then it will fault)."""
        block = state.space.builder.uncopied(pc)
        if block is None:
            self.step(state, pc)
            return
        encoding = block.source.code[: block.source.offsets[1]]
        if self._isa.decode_block(encoding, pc).reps[0]:
            state.repeating = encoding
            state.tally.rep_iterations += self._isa.rep_count(encoding, state.thread.registers())
        raises = self._backend.raises_trap(encoding)
        self.begin(state, NativeStop(block, 0, 0, False, raises))

    def step_counted(self, state: TranslatedThread, block: Fragment, index: int) -> bool:
        """Execute one instruction of a block that has been counted; False where it cannot be executed by
        itself."""
        source = block.source
        first, end = source.offsets[index : index + 2]
        encoding = source.code[first:end]
        code = self._isa.decode_block(encoding, source.pc + first)
        if len(code) != 1 or code.quirks[0] in (Quirk.SHADOW, Quirk.EXCLUSIVE):
            return False
        if code.reps[0]:
            state.repeating = encoding
            self._charge_iterations(state, 1)
        resume = block.start + block.resume(index + 1)
        raises = self._backend.raises_trap(encoding)
        state.within = block
        self.begin(state, NativeStop(block, index, resume, True, raises))
        return True

    def take_off_iterations(self, state: TranslatedThread) -> None:
        """Take off the iterations that a rep instruction still has before it, which a thread executes no
        further."""
        self._charge_iterations(state, -1)

    def _charge_iterations(self, state: TranslatedThread, sign: int) -> None:
        if state.repeating:
            left = self._isa.rep_count(state.repeating, state.thread.registers())
            state.tally.rep_iterations += sign * left
            if sign < 0:
                state.repeating = b""

    def prepare(self, state: TranslatedThread, pc: int) -> None:
        """Put a thread at the program's address `pc`, with its own registers, for one step.

        `state.native` is the stop that stands for it, None if nothing is known of it
        (unreadable code, which will fault).
        """
        thread = state.thread
        registers = thread.registers()
        mapping = thread.process.space.find(pc)
        state.at = pc
        if mapping is not None and mapping.path == "[vsyscall]":
            # The kernel carries out the call and its return on the fetch fault; what
            # the step executes is the instruction returned to.
            state.at = int.from_bytes(thread.read(getattr(registers, self._isa.registers.sp), 8), "little")
        setattr(registers, self._isa.registers.pc, pc)
        self._backend.set_own(thread.tid, registers, state.words, state.program_base)
        state.before = registers
        state.mode = Mode.NATIVE

    def end(self, state: TranslatedThread) -> None:
        """The instruction stepped has been executed."""
        self._charge_iterations(state, -1)
        self._answer(state)
        thread = state.thread
        pc = self._pc.of(thread.tid)
        stop, state.native = state.native, None
        if stop is None:
            # Not known when it was stepped: known now, or it could not have run.
            block = state.space.builder.uncopied(state.at)
            if block is not None:
                if state.trace is not None:
                    state.trace.stepping(block, 0, lambda: state.before)
                self._ledger.record_partial(state, block, 1, counted=False)
            self.leave(state)
            self._onward.enter(state, pc)
            return
        block, index = stop.block, stop.index
        source = block.source
        self._moved(state)
        executed = index + 1
        if state.trace is not None:
            state.trace.stepped(state.thread.registers, recorded=stop.counted)
        if source.facts[index].flow is Flow.SYSCALL:
            self._syscalls.after(state, returned=pc == source.pc + source.offsets[executed])
        else:
            self._forget_step(thread, block, index)
        if executed < len(source.facts) and stop.resume and pc == source.pc + source.offsets[executed]:
            resume = self._room.in_force(state, block, executed, stop.resume)
            if resume is not None:
                self.leave(state)
                self._onward.go(state, resume)
                return
        if executed < len(source.facts) or not stop.counted:
            self._ledger.record_partial(state, block, executed, counted=stop.counted)
        self.leave(state)
        self._onward.enter(state, pc)

    def _forget_step(self, thread: TracedThread, block: Fragment, index: int) -> None:
        """Take away what a step over an instruction (no system call) leaves for the program to see."""
        first, behind = block.source.offsets[index : index + 2]
        encoding = block.source.code[first:behind]
        quirk = self._quirks.get(encoding)
        if quirk is None:
            quirk = self._quirks[encoding] = self._isa.decode_block(encoding, block.source.pc).quirks[0]
        self._isa.after_step(quirk, thread)
        registers = thread.registers()
        if self._isa.stop_stepping(registers):
            thread.set_registers(registers)

    def _answer(self, state: TranslatedThread) -> None:
        """Answer the call that a thread has made if it was a question to livepro."""
        stop, before = state.native, state.before
        if stop is not None:
            command = self._inprocess.command(state.thread, before)
            # (What looks like one may be any instruction with the call's number in its register.)
            if command is not None and stop.block.source.facts[stop.index].flow is Flow.SYSCALL:
                state.asking = stop.block.position(stop.index + 1, counted=stop.counted)
                self._inprocess.answer(state.thread, state.tally, before, command)
                state.asking = None

    def leave(self, state: TranslatedThread) -> None:
        """Give a thread its area back: it returns to the cache."""
        area = state.area_address
        state.program_base = self._backend.enter_area(state.thread.tid, area, state.words)
        self._moved(state)

    @staticmethod
    def _moved(state: TranslatedThread) -> None:
        """What a call of a thread's has mapped otherwise is so."""
        if state.space.trust.guard is not None:
            state.space.trust.guard.moved(state.thread.tid)
