"""The step engine: single-steps every thread. Slow, and the reference for the others.

An instruction is counted when it retires: when a step is seen to have left
it. A thread's state is the block it is in and the index of the instruction it
will attempt next. The loop in `run` handles the plain cases in a few bytecodes:
the program counter has moved to the next instruction of the block, or from its
last one to a block that it has led to before. Anything else (new ways, rep,
system calls, code that may change) takes `_advance`.
"""

from __future__ import annotations

import os
import signal

from livepro.engines import stepping
from livepro.engines.base import EngineOptions, run_free
from livepro.engines.decoding import Decoding
from livepro.engines.exclusive import SEQUENCE_BYTES, Exclusives
from livepro.engines.recording import ThreadTally
from livepro.engines.stepping import StepThread
from livepro.engines.window import BETWEEN, Position
from livepro.isa.base import Isa, Quirk
from livepro.linux import ptrace
from livepro.linux.wait import TRAP_STATUS
from livepro.model import Flow
from livepro.tracee import TracedThread
from livepro.tracee.stops import ROUND, WAIT_FLAGS, failed, killed, next_in_turn

# si_code of SIGTRAP stops: include/uapi/asm-generic/siginfo.h, arch/x86/kernel/traps.c.
_TRAP_TRACE = ptrace.TRAP_TRACE  # one instruction was executed
_HANDLER_ENTERED = signal.SIGTRAP  # ptrace_notify(SIGTRAP) in signal_setup_done (kernel/signal.c)

# A call that will be restarted unless a handler says otherwise (include/linux/errno.h), never seen outside.
_RESTARTS = frozenset((1 << 64) - code for code in (512, 513, 514, 516))

_ADDRESS_MASK = (1 << 64) - 1


class StepEngine(Decoding):
    """See `livepro.engines.base.Engine`."""

    name = "step"

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        layout = isa.registers
        self._pc = ptrace.program_counter_reader(layout.pc_user_offset, layout.structure, layout.pc)
        self._remapping = isa.syscalls.named(
            "mmap", "munmap", "mprotect", "pkey_mprotect", "mremap", "shmat", "shmdt", "remap_file_pages"
        )
        self._unexplained = 0
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
        if self._unexplained:
            self.warnings.append(
                f"{self._unexplained} steps led to an address that the instruction stepped cannot lead to; "
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
            self._advance(state, pc)
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
        while state.block.code.quirks[state.index] is Quirk.EXCLUSIVE:
            whole = self._whole(state)
            if whole is None:
                break
            if not whole:
                return
        if ptrace.raw(ptrace.PTRACE_SINGLESTEP, state.thread.tid, None, None) == -1:
            failed(state.thread.tid)

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
                self._advance(state, pc)
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
        if state.block.code.quirks[state.index] is Quirk.SYSCALL:
            state.held |= self.isa.call_entered(state.thread.registers())

    def _is_step(self, state: StepThread, pc: int) -> bool:
        """Whether the stop stands for an executed instruction; else it has been dealt with."""
        code, index = state.block.code, state.index
        unmoved = pc == code.addresses[index]
        trap = code.flows[index] is Flow.TRAP
        if not (state.suspect or unmoved or trap):
            return True
        info = ptrace.signal_info(state.thread.tid)
        kind = info.code if info is not None else _TRAP_TRACE
        left_call = self._left_call(info)
        if kind == _HANDLER_ENTERED:
            # A trap that finds SIGTRAP blocked resets its action (force_sig_info_to_task in
            # kernel/signal.c): a handler of the program's own would be lost by stepping.
            ptrace.unblock(state.thread.tid, signal.SIGTRAP)
            self._leave(state, index + state.held)
            if state.trace is not None:
                state.trace.goes_on(code.addresses[index + state.held])
            self._enter(state, pc)
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
        self.resume(thread, number)

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
            if result in _RESTARTS:
                state.held = True
                return
        else:
            state.counted = trap_due
        self._advance(state, pc)

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        state = self._states.get(thread.tid)
        if state is not None and not number:
            self._step(state)
        elif state is not None:
            ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)
        else:
            run_free(thread, number)

    # -- the thread's position

    def position(self, tally: ThreadTally) -> Position:
        state = self._states.get(tally.thread.tid)
        return BETWEEN if state is None or state.tally is not tally else state.position

    def _advance(self, state: StepThread, pc: int) -> None:
        """The instruction attempted has retired and led to `pc`."""
        block = state.block
        code, index = block.code, state.index
        addresses = code.addresses
        quirk = code.quirks[index]
        if code.reps[index]:
            stepping.count_iterations(self.isa, state)
            if pc == addresses[index]:
                return  # one iteration of several: not retired yet
        if quirk is not Quirk.NONE:
            self._after_quirk(state, quirk, returned=pc == addresses[index + 1])
        if state.trace is not None:
            state.trace.retired(index)
        state.held = False
        after = index + 1
        if quirk is Quirk.SHADOW and after < len(code) and (pc != addresses[after] or code.reps[after]):
            # The instruction behind it was executed in the same step, or one iteration of it.
            state.index = after
            self._advance(state, pc)
            return
        if after == len(addresses) - 1:
            if not stepping.may_follow(code, pc):
                self._unexplained += 1
                self._complete(state)
                self._enter(state, pc)
            else:
                self._complete(state)
                self._enter(state, pc)
                if state.trace is None and self._plain(state, pc):
                    block.link(state.block)
        elif pc == addresses[after]:
            state.index = after
            self._arrive(state)
        elif quirk is Quirk.SYSCALL:
            self._leave(state, after)  # sigreturn
            self._enter(state, pc)
        else:
            self._skipped(state, pc)

    def _skipped(self, state: StepThread, pc: int) -> None:
        """More than one instruction was executed on the way to `pc`: a trap was swallowed
        by a hypervisor that emulated the instruction."""
        code = state.block.code
        self._unexplained += 1
        # The thread cannot have left the straight line before its terminator.
        end = len(code)
        reached = code.addresses.index(pc) if pc in code.addresses[state.index + 1 : end] else end
        if reached < end:
            state.index = reached
            self._arrive(state)
        else:
            self._complete(state)
            self._enter(state, pc)

    def _after_quirk(self, state: StepThread, quirk: Quirk, *, returned: bool) -> None:
        if returned:  # not by sigreturn, whose registers are all the program's own
            self.isa.after_step(quirk, state.thread)
        state.muddled |= quirk is Quirk.POP_FLAGS
        if quirk is Quirk.SYSCALL:
            layout = self.isa.registers
            before = state.before
            if getattr(before, layout.syscall_number) in self._remapping:
                address, size, protection = (getattr(before, name) for name in layout.syscall_arguments[:3])
                self._remapped(state, address, size, protection)
            elif (command := self.inprocess.command(state.thread, before)) is not None:
                code, executed = state.block.code, state.index + 1
                state.asking = Position(state.block.row, executed, 0, len(code))
                self.inprocess.answer(state.thread, state.tally, before, command)
                state.asking = None

    @staticmethod
    def _complete(state: StepThread) -> None:
        """The thread has executed its block as a whole."""
        state.tally.complete(state.block.row)
        if state.trace is not None:
            state.trace.complete()

    def _leave(self, state: StepThread, count: int) -> None:
        """The thread goes elsewhere after the block's first `count` instructions."""
        state.tally.prefix(state.block.row, count)
        if state.trace is not None:
            repeats = state.index == count and state.block.code.reps[count]
            state.trace.leave(count, state.before if repeats else None)
        state.held = False

    def _enter(self, state: StepThread, pc: int) -> None:
        """The thread is about to execute the instruction at `pc`, the first of a block."""
        block = self._known[state.record].get(pc)
        if block is None or not (block.stable or stepping.unchanged(state, block, 0)):
            block = self._decode(state.thread.process, state.record, pc)
        state.block = block
        state.expect = block.expect
        state.index = 0
        self._about_to(state)

    def _arrive(self, state: StepThread) -> None:
        """The thread is about to execute instruction `index`, in the middle of its block."""
        block, index = state.block, state.index
        if not block.stable and not stepping.unchanged(state, block, index):
            self._leave(state, index)
            self._enter(state, block.code.addresses[index])
            return
        self._about_to(state)

    # -- lives

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
        state = StepThread(thread, tally, record, self._decode(thread.process, record, pc))
        if self.options.stream is not None:
            stream = self.options.stream.thread(thread, record, self.isa)
            from livepro.engines.stream.stepping import StepTrace

            state.trace = StepTrace(self.options.stream, stream, self.isa)
        self._states[thread.tid] = state
        self._enter(state, pc)
        stepping.hold(self.isa, state)

    def part(self, thread: TracedThread) -> bool:
        state = self._states.pop(thread.tid, None)
        if state is not None:
            self._leave(state, state.index + state.held)
            stepping.unstep(self.isa, thread, state.held)
            self._end_trace(state)
        self.tracer.release(thread)
        return True

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        state = self._states.pop(thread.tid, None)
        if state is None:
            return
        code, index = state.block.code, state.index
        if not in_exec:
            self._stays(state)
        entered = code.quirks[index] is Quirk.SYSCALL and (
            in_exec or state.held or self._pc(thread.tid) == code.addresses[index + 1]
        )
        self._leave(state, index + entered)
        self._end_trace(state)

    def gone(self, thread: TracedThread) -> None:
        state = self._states.pop(thread.tid, None)
        if state is not None:
            # Killed without a last word. A thread that was sent into a system
            # call had entered it: livepro lets no thread wait before one.
            self._leave(state, state.index + (state.block.code.quirks[state.index] is Quirk.SYSCALL))
            self._end_trace(state)

    @staticmethod
    def _end_trace(state: StepThread) -> None:
        if state.trace is not None:
            state.trace.end()
