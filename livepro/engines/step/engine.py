"""The step engine: single-steps every thread. Slow, and the reference for the others.

An instruction is counted when it retires: when a step is seen to have left
it. A thread's state is the block it is in and the index of the instruction it
will attempt next. The loop in `run` handles the plain cases in a few bytecodes:
the program counter has moved to the next instruction of the block, or from its
last one to a block that it has led to before. Anything else (new ways, rep,
system calls, code that may change) is `StepWalk`'s.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from livepro.engines.base import Engine, EngineOptions, run_free
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.region import Arrival
from livepro.engines.step import stepping
from livepro.engines.step.calling import Call, MaskedCalls
from livepro.engines.step.decoding import Decoder
from livepro.engines.step.exclusive import SEQUENCE_BYTES, Exclusives
from livepro.engines.step.regional import RegionKeeper
from livepro.engines.step.stepping import StepThread
from livepro.engines.step.walking import StepWalk
from livepro.engines.window import BETWEEN, Position
from livepro.isa.base import RESTARTS, Isa, Quirk
from livepro.linux import ptrace
from livepro.linux.wait import TRAP_STATUS
from livepro.model import Flow
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.stops import ROUND, WAIT_FLAGS, failed, killed, next_in_turn

if TYPE_CHECKING:
    from livepro.engines.rescue import OwnCode

# si_code of SIGTRAP stops: include/uapi/asm-generic/siginfo.h, arch/x86/kernel/traps.c.
_TRAP_TRACE = ptrace.TRAP_TRACE  # one instruction was executed
_HANDLER_ENTERED = signal.SIGTRAP  # ptrace_notify(SIGTRAP) in signal_setup_done (kernel/signal.c)

_ADDRESS_MASK = (1 << 64) - 1


class StepEngine(Engine):
    """See `livepro.engines.base.Engine`.

    `keeper` keeps to a region of interest, `decoder` knows the blocks, `walk` where threads get to, `calls`
    keep what traps would take from threads that block SIGTRAP.
    """

    name = "step"

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._states: dict[int, StepThread] = {}
        self.keeper = RegionKeeper(isa, self.region, options.region, self._states, self._ahead)
        self.decoder = Decoder(self.keeper, self._states)
        self.walk = StepWalk(isa, self.keeper, self.decoder, self.inprocess, self.tracer.births, self.traps)
        layout = isa.registers
        self.calls = MaskedCalls(isa)
        self._pc = ptrace.program_counter_reader(layout.pc_user_offset, layout.structure, layout.pc)
        self._exclusives = Exclusives(isa, self._pc)

    def run(self) -> None:
        """Step every thread until all have ended."""
        wait, request, read_pc, step = os.waitpid, ptrace.lean, self._pc, ptrace.PTRACE_SINGLESTEP
        states, threads, dispatch = self._states, self.tracer.threads, self.tracer.dispatch
        stops = 0
        try:
            while threads or self.tracer.busy:
                tid, status = wait(-1, WAIT_FLAGS) if stops % ROUND else next_in_turn(self.tracer.tids, stops)
                stops += 1
                if status == TRAP_STATUS and (state := states.get(tid)) is not None:
                    pc = read_pc(tid)
                    if pc == state.expected:
                        state.index = index = state.index + 1
                        state.expected = state.expect[index]
                        if request(step, tid, None, None) == -1:
                            failed(tid)
                        continue
                    block = state.block
                    follower = block.links.get(pc)
                    if follower is not None and state.index == block.last and not state.suspect:
                        state.tally.complete(block.row)
                        state.block = follower
                        state.expect = follower.expect
                        state.expected = follower.expect[0]
                        state.index = 0
                        if request(step, tid, None, None) == -1:
                            failed(tid)
                    else:
                        self._trap(state, pc)
                else:
                    dispatch(tid, status)
        except ChildProcessError:
            pass
        self.stats["stops"] = stops
        unexplained = self.walk.unexplained
        if unexplained:
            self.warnings.append(
                f"{unexplained} steps led to an address that the instruction stepped cannot lead to; "
                "counts may be off by as many instructions."
            )
        self._exclusives.tell(self.warnings)
        self.finish()

    # -- stops

    def _trap(self, state: StepThread, pc: int) -> None:
        """A SIGTRAP stop that the loop could not place."""
        if pc == -1 and failed(state.thread.tid):
            return
        pc &= _ADDRESS_MASK  # the vsyscall page is in the upper half
        try:
            if not self._is_step(state, pc):
                return
            self.walk.advance(state, pc)
            if state.muddled:  # it stops again before it executes anything
                state.muddled = False
                ptrace.call(ptrace.PTRACE_INTERRUPT, state.thread.tid)
                run_free(state.thread)
                return
        except OSError:
            if not killed(state.thread.tid):
                raise
            return  # killed meanwhile, too
        self._step(state)

    def _step(self, state: StepThread) -> None:
        """Let the thread attempt its next instruction, with all of an exclusive sequence."""
        within = state.call is Call.WITHIN
        if not within and state.block.code.quirks[state.index] is Quirk.SYSCALL and self._before_call(state):
            return
        while not within and state.block.code.quirks[state.index] is Quirk.EXCLUSIVE:
            whole = self._whole(state)
            if whole is None:
                break
            if not whole:
                return
        if ptrace.raw(self.calls.request(state), state.thread.tid, None, None) == -1:
            failed(state.thread.tid)

    def _before_call(self, state: StepThread) -> bool:
        """A thread is about to make a system call: whether it is let go for that."""
        if self._taken(state):
            return True
        self.tracer.births.before(state.thread, state.before)
        return False

    def _taken(self, state: StepThread) -> bool:
        """Let a thread go that stands before a call by which it gets another tracer, not yet in it."""
        return not state.held and self.debuggers.take(state.thread, state.before) and self.part(state.thread)

    def _whole(self, state: StepThread) -> bool | None:
        """Run the exclusive sequence that the thread stands at, and count it: None if it is none,
        False if the thread has met something else on the way, which has been dealt with."""
        address = state.block.code.addresses[state.index]
        sequence = self.isa.exclusive_sequence(self._text_at(state, address, SEQUENCE_BYTES), address)
        if sequence is None:
            return None
        try:
            done = self._exclusives.run(state.thread, sequence)
            if done is None:
                return None
            for pc in done[0]:
                self.walk.advance(state, pc)
        except OSError:
            if not killed(state.thread.tid):
                raise
            return False  # killed meanwhile: its end is the next status
        status = done[1]
        if status is None:
            return True
        self.tracer.dispatch(state.thread.tid, status)
        return False

    def _text_at(self, state: StepThread, address: int, size: int) -> bytes:
        """The program's own code."""
        return state.thread.read(address, size)

    def _stays(self, state: StepThread) -> None:
        """The thread stands where it stood, maybe in a system call that will be restarted."""
        if state.block.code.quirks[state.index] is Quirk.SYSCALL and state.call is Call.NONE:
            state.held |= self.isa.call_entered(state.thread.registers())

    def _is_step(self, state: StepThread, pc: int) -> bool:
        """Whether the stop stands for an executed instruction; else it has been dealt with."""
        code, index = state.block.code, state.index
        unmoved = pc == code.addresses[index]
        trap = code.flows[index] is Flow.TRAP
        # A SIGTRAP that a call sends to its own thread takes the place of the one of its step
        # (legacy_queue in kernel/signal.c).
        calls = code.quirks[index] is Quirk.SYSCALL
        if not (state.suspect or unmoved or trap or calls):
            return True
        info = ptrace.signal_info(state.thread.tid)
        kind = info.code if info is not None else _TRAP_TRACE
        left_call = self._left_call(info)
        if kind == _HANDLER_ENTERED:
            self.calls.lift(state.thread.tid)
            self.walk.leave(state, index + state.held)
            if state.trace is not None:
                state.trace.goes_on(code.addresses[index + state.held])
            self.walk.enter(state, pc)
            self.resume(state.thread)
            return False
        if unmoved and (left_call or (kind == _TRAP_TRACE and state.counted)):
            state.counted = False
            state.suspect = False
            if left_call:
                self._stays(state)
                self.isa.after_step(Quirk.SYSCALL, state.thread)
            self.resume(state.thread)
            return False
        if kind == _TRAP_TRACE or (left_call and not trap):
            state.suspect = False
            return True
        if unmoved and not trap and self._exclusives.met(state.thread, pc, kind):
            self.resume(state.thread)
            return False
        # The program's own: int3, int1, or a SIGTRAP that somebody sent.
        self.signalled(state.thread, signal.SIGTRAP)
        return False

    def _left_call(self, info: ptrace.SignalInfo | None) -> bool:
        """Whether a SIGTRAP tells of a step out of a system call."""
        kind = self.isa.call_trap
        return info is not None and info.code == kind and (kind > 0 or info.pid == 0)

    def trapped(self, thread: TracedThread) -> None:
        self._trap(self._states[thread.tid], self._pc(thread.tid))

    def signalled(self, thread: TracedThread, number: int) -> None:
        self._settle(thread)
        self.resume(thread, self._delivered(thread, number))

    def _delivered(self, thread: TracedThread, number: int) -> int:
        """The signal that a thread goes on with that has stopped for signal `number`."""
        number = self.traps.delivered(thread, number)
        return 0 if self.calls.keeps(thread.tid, number) else number

    def called(self, thread: TracedThread) -> None:
        state = self._states.get(thread.tid)
        if state is not None and not self.calls.entered(state):
            if not self.calls.made(state):
                self._settle(thread)
            else:  # a handler has returned, and the call has no result
                self.walk.advance(state, self._pc(thread.tid) & _ADDRESS_MASK)
        if self.leaving:  # a stop that was asked for gave way to this one (ptrace_stop in kernel/signal.c)
            ptrace.call(ptrace.PTRACE_INTERRUPT, thread.tid)
        self.resume(thread)

    def interrupted(self, thread: TracedThread) -> None:
        self._settle(thread, trap_due=True)

    def _settle(self, thread: TracedThread, *, trap_due: bool = False) -> None:
        """At a stop that is no step: count what retired on the way to it.

        `trap_due` is for a stop that the kernel makes before it takes signals: if the
        thread has moved, its step's own SIGTRAP is yet to be reported.
        """
        state = self._states.get(thread.tid)
        if state is None:
            return
        state.suspect = True
        code, index = state.block.code, state.index
        pc = self._pc(thread.tid) & _ADDRESS_MASK
        if pc == code.addresses[index]:
            if code.reps[index]:
                stepping.count_iterations(self.isa, state)
            self._stays(state)
            return
        if code.quirks[index] is Quirk.SYSCALL:
            result = getattr(thread.registers(), self.isa.registers.syscall_result)
            if result in RESTARTS:
                state.held = True
                return
        else:
            state.counted = trap_due
        self.walk.advance(state, pc)

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        state = self._states.get(thread.tid)
        if state is not None and not number:
            self._step(state)
        elif state is not None:
            ptrace.call(self.calls.deliver(state, number), thread.tid, 0, number)
        else:
            run_free(thread, number)

    def homing(self) -> OwnCode:
        from livepro.engines.rescue import OwnCode

        return OwnCode(self.isa, self.calls.own)

    # -- the thread's position

    def position(self, tally: ThreadTally) -> Position:
        state = self._states.get(tally.thread.tid)
        return BETWEEN if state is None or state.tally is not tally else state.position

    def _ahead(self, state: StepThread) -> int:
        """Instructions that a thread may complete before it asks again."""
        return len(state.block.code)

    # -- what a region needs

    def rearm(self) -> None:
        pass  # each arrival is looked at

    def meter(self, instructions: int) -> None:
        self.keeper.meter(instructions)

    @property
    def metered_left(self) -> int:
        return self.keeper.left

    def passing(self, arrived: Mapping[int, Arrival]) -> AbstractContextManager[None]:
        return self.keeper.passing(arrived)

    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]:
        return self.keeper.called_away(arrived)

    # -- lives

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        super().process_started(process, parent)
        self.decoder.begin(self.records[process])

    def process_ended(self, process: TracedProcess) -> None:
        self.decoder.end(self.records[process])
        super().process_ended(process)

    def _enrolled(self, thread: TracedThread, record: ImageRecord) -> ThreadTally:
        """The tally of a thread that is about to execute its first instruction."""
        spend = self.keeper.spend if self.keeper.metered(thread.process) else None
        tally = ThreadTally(thread, record.store, self.options.cut, spend)
        self.control.enrol(record, tally)
        return tally

    def thread_started(self, thread: TracedThread) -> None:
        record = self.records[thread.process]
        tally = self._enrolled(thread, record)
        if not thread.process.measured:
            return
        pc = self._pc(thread.tid)
        if thread.attached:
            pc = stepping.taken_at(self.isa, thread)
        else:
            self.isa.after_step(Quirk.SYSCALL, thread)  # what its parent's step left in its registers
        state = StepThread(thread, tally, record, self.decoder.decode(thread.process, record, pc))
        stepping.begin_trace(state, self.options.stream, self.isa)
        self._states[thread.tid] = state
        self.walk.enter(state, pc)
        stepping.hold(self.isa, state)
        self.calls.lift(thread.tid)

    def part(self, thread: TracedThread) -> bool:
        state = self._states.pop(thread.tid, None)
        if state is not None:
            executed = state.index + state.held
            self.walk.leave(state, executed)
            stepping.unstep(self.isa, thread, state.held)
            stepping.end_trace(state, state.block.code.addresses[executed])
        self.tracer.release(thread, self.calls.leave(thread))
        return True

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        self.calls.forget(thread.tid)
        state = self._states.pop(thread.tid, None)
        if state is None:
            return
        code, index = state.block.code, state.index
        if not in_exec:
            self._stays(state)
        entered = code.quirks[index] is Quirk.SYSCALL and (
            in_exec
            or state.held
            or state.call is Call.WITHIN
            or self._pc(thread.tid) == code.addresses[index + 1]
        )
        self.walk.leave(state, index + entered)
        stepping.end_trace(state)

    def gone(self, thread: TracedThread) -> None:
        self.calls.forget(thread.tid)
        state = self._states.pop(thread.tid, None)
        if state is not None:
            # Killed without a last word. A thread that was sent into a system
            # call had entered it: livepro lets no thread wait before one.
            self.walk.leave(state, state.index + (state.block.code.quirks[state.index] is Quirk.SYSCALL))
            stepping.end_trace(state)
