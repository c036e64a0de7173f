"""The block engine: threads run from breakpoint to breakpoint, one stop per block or less.

**Counting.** A breakpoint stands on the terminator of a block, the tracer
carries the terminator out (`isa.terminator`) and lets the thread run on to the
next one. So a breakpoint never has to be lifted for the thread that hit it, and
no other thread can slip through. A block is counted when its terminator has
been carried out, or, for blocks that a plan passes through, when a stop behind
them shows that they were (`block.plan`). A thread that stops anywhere else (a
signal, a fault, its end) tells by its pc what it has executed.

**Stepping.** Code that is not file-backed, private and read-only is stepped as the
step engine does it, and so are, in any block, the instructions up to its last
system call or rep: the rest of that block is run. Before a signal is delivered
a thread becomes a stepped one where it stands, so that handlers, restarted
system calls and sigreturn are the step engine's affair.

A thread whose event stream is recorded is stepped throughout: addresses come from its registers.

**Barred sites.** Some terminators only the processor can execute (far ones, traps),
or only now (its operand's page is protected, the stack must grow): no breakpoint
may stand there, and their blocks are stepped (`block.barring`).

**Limits.** A program that reads its own code sees the breakpoints, one that copies
it takes them along.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import TYPE_CHECKING

from livepro.engines.base import EngineOptions, run_free
from livepro.engines.block.barring import Barrier
from livepro.engines.block.detaching import Detacher
from livepro.engines.block.hits import Hits
from livepro.engines.block.plan import LONGEST
from livepro.engines.block.planning import Planner
from livepro.engines.block.running import BlockRunner
from livepro.engines.block.spaces import Spaces
from livepro.engines.block.terminators import Terminators
from livepro.engines.block.text import Text
from livepro.engines.block.thread import BlockThread
from livepro.engines.block.walking import BlockWalk
from livepro.engines.block.watching import RepWatch
from livepro.engines.step.engine import StepEngine
from livepro.engines.step.stepping import StepThread, begin_trace, hold, refuse_shadow_stack, taken_at
from livepro.isa.access import ALL_64
from livepro.isa.base import Isa, Quirk
from livepro.linux import ptrace
from livepro.linux.wait import TRAP_STATUS
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.stops import ROUND, WAIT_FLAGS, failed, killed, next_in_turn

if TYPE_CHECKING:
    from livepro.engines.block.homing import BlockHoming


class BlockEngine(StepEngine):
    """See `livepro.engines.base.Engine`.

    `spaces` follow the code of processes, `planner` finds where threads may run, `barrier` keeps breakpoints
    from where they may not be; `runner` resumes threads, `watch` shows the ends of reps, `detacher` lets
    threads go.
    """

    name = "block"
    walk: BlockWalk

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._running = running = dict[int, BlockThread]()
        texts = dict[TracedProcess, Text]()
        # (It is asked for a thread to go on once a breakpoint has been planted, and not before.)
        self.barrier = barrier = Barrier(isa, running, texts, lambda state: self.runner.go(state))
        self.spaces = spaces = Spaces(isa, texts, barrier)
        self.planner = planner = Planner(isa, self.keeper, self.decoder, barrier)
        self.watch = watch = RepWatch(isa)
        self.walk = walk = BlockWalk(
            *(isa, self.keeper, self.decoder, self.inprocess, self.tracer.births, self.traps),
            *(planner, spaces, barrier),
        )
        self.runner = BlockRunner(
            *(walk, barrier, watch, self.calls, self._pc, self._before_call, self._whole)
        )
        self._hits = hits = Hits(isa, self._pc)
        self.detacher = Detacher(
            *(isa, self.tracer, self._states, running, texts, walk, barrier, self.calls, self._pc, hits.met)
        )
        self._terminators = Terminators(isa, planner, walk, barrier, self.runner)
        self._lost = 0

    def run(self) -> None:
        """Run every thread from breakpoint to breakpoint until all have ended."""
        wait, request, read_pc = os.waitpid, ptrace.lean, self._pc
        get, put, run, step = (
            ptrace.PTRACE_GETREGSET,
            ptrace.PTRACE_SETREGSET,
            ptrace.PTRACE_CONT,
            ptrace.PTRACE_SINGLESTEP,
        )
        terminators = self._terminators
        kind, registers, pc_index = ptrace.NT_PRSTATUS, terminators.registers, terminators.pc_index
        where = ctypes.c_void_p(terminators.where)
        states, threads, dispatch = self._running, self.tracer.threads, self.tracer.dispatch
        stops = 0
        try:
            while threads or self.tracer.busy:
                tid, status = wait(-1, WAIT_FLAGS) if stops % ROUND else next_in_turn(self.tracer.tids, stops)
                stops += 1
                if status != TRAP_STATUS or (state := states.get(tid)) is None:
                    dispatch(tid, status)
                    continue
                plan = state.plan
                if plan is None:
                    pc = read_pc(tid)
                    if pc == state.expected:
                        state.index = index = state.index + 1
                        state.expected = state.expect[index]
                        if request(step, tid, None, None) == -1:
                            failed(tid)
                    else:
                        self._trap(state, pc)
                    continue
                if request(get, tid, kind, where) == -1:
                    failed(tid)
                    continue
                path = plan.ends.get(registers[pc_index])
                if path is None:
                    self._trap(state, registers[pc_index])
                    continue
                if path.carry(registers, state.words):
                    node = state.known.get(registers[pc_index])
                    if node is not None and path.rows:
                        plan = node.plan
                        if plan is not None and plan.version == state.text.version and not state.cutting:
                            for row in path.rows:
                                state.entries[row] += 1
                            state.block = node
                            state.index = 0
                            state.plan = plan
                            state.owed = False
                            if request(put, tid, kind, where) == -1:
                                failed(tid)
                            elif request(run, tid, None, None) == -1:
                                state.carried = True
                                failed(tid)
                            continue
                    terminators.carried(state, path)
                else:
                    terminators.refused(state, path)
        except ChildProcessError:
            pass
        self.stats["stops"] = stops
        self._summarise()
        self.finish()

    # -- stops

    def _trap(self, state: StepThread, pc: int) -> None:
        """A SIGTRAP stop that the loop could not place."""
        assert isinstance(state, BlockThread)
        if pc == -1 and failed(state.thread.tid):
            return
        pc &= ALL_64
        try:
            if state.watched and self.watch.unwatch(state):
                self.walk.advance(state, pc)
            elif state.plan is not None:
                if not self._is_astray(state, pc):
                    return
            elif self._is_hit(state, pc):
                return
            elif self._is_step(state, pc):
                self.walk.advance(state, pc)
            else:
                return
        except OSError:
            if not killed(state.thread.tid):
                raise
            return  # killed meanwhile, too
        self.runner.go(state)

    def _is_hit(self, state: BlockThread, pc: int) -> bool:
        """Whether a thread that was stepped has met the breakpoint on its block's terminator;
        if so, it has been dealt with."""
        if not self._hits.may_be(state, pc) or not self._hits.by_breakpoint(state):
            return False
        state.suspect = False
        self._terminators.meet(state)
        return True

    def _is_astray(self, state: BlockThread, pc: int) -> bool:
        """A running thread has a SIGTRAP that is not from its plan's breakpoints: whether it is
        to go on (else it has been dealt with)."""
        assert state.plan is not None
        info = ptrace.signal_info(state.thread.tid)
        stepped = info is not None and (info.code == ptrace.TRAP_TRACE or self._left_call(info))
        if stepped and state.suspect:
            state.suspect = False  # of the step that another stop came before
            return True
        if info is not None and info.code == self.isa.breakpoint.si_code:
            site = state.text.sites.get(pc - self.isa.breakpoint.pc_advance)
            if site is not None:
                # Something else than a terminator has led it out of its plan.
                self.walk.astray(state, site.address)
                return True
            if self._exclusives.met(state.thread, pc, info.code):
                return True
        self.signalled(state.thread, signal.SIGTRAP)  # somebody sent it
        return False

    def _taken(self, state: StepThread) -> bool:
        # In its parent's memory, until it begins an image of its own, it would meet breakpoints.
        return not state.thread.process.shares_memory and super()._taken(state)

    def trapped(self, thread: TracedThread) -> None:
        state = self._running.get(thread.tid)
        if state is None:
            run_free(thread, signal.SIGTRAP)
        else:
            self._trap(state, self._pc(thread.tid))

    def signalled(self, thread: TracedThread, number: int) -> None:
        self._settle(thread)
        state = self._running.get(thread.tid)
        if state is not None:
            self.barrier.no_longer_running(state)
        self.resume(thread, self._delivered(thread, number))

    def interrupted(self, thread: TracedThread) -> None:
        state = self._running.get(thread.tid)
        if state is not None and self._hits.owes_trap(state):
            state.owed = True
        else:
            self._settle(thread, trap_due=True)

    def stopped(self, thread: TracedThread) -> None:
        self.interrupted(thread)
        state = self._running.get(thread.tid)
        if state is not None:
            self.barrier.no_longer_running(state)

    def _settle(self, thread: TracedThread, *, trap_due: bool = False) -> None:
        state = self._running.get(thread.tid)
        if state is not None and state.watched:
            self.watch.unwatch(state)
        if state is None or state.plan is None:
            super()._settle(thread, trap_due=trap_due)
        else:
            self.walk.stand(state, self._pc(thread.tid) & ALL_64)
            state.suspect = True

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        state = self._running.get(thread.tid)
        if state is None:
            run_free(thread, number)
        elif number:
            if state.plan is not None:
                self.walk.stand_at(state, state.block, state.index)
            ptrace.call(self.calls.deliver(state, number), thread.tid, 0, number)
            state.carried = False
        else:
            self.runner.go(state)

    # -- lives

    def thread_started(self, thread: TracedThread) -> None:
        process = thread.process
        record = self.records[process]
        tally = self._enrolled(thread, record)
        if not process.measured:
            return
        pc = self._pc(thread.tid)
        if thread.attached:
            refuse_shadow_stack(self.isa, thread)
            pc = taken_at(self.isa, thread)
        else:
            self.isa.after_step(Quirk.SYSCALL, thread)  # what its parent's step left in its registers
        state = BlockThread(thread, tally, record, self.spaces.texts[process], self.spaces.nodes[process])
        begin_trace(state, self.options.stream, self.isa)
        self._running[thread.tid] = state
        self._states[thread.tid] = state
        self.walk.enter(state, pc)
        hold(self.isa, state)
        self.calls.lift(thread.tid)

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        state = self._running.pop(thread.tid, None)
        if state is None:
            return
        if state.plan is not None:
            pc = self._pc(thread.tid)
            path = state.plan.ends.get(pc)
            if path is not None:
                # Its breakpoint's signal is lost: it stands before the terminator.
                site = path.nodes[-1].site
                assert site is not None
                pc = site.address
            self.walk.stand(state, pc)
        super().exiting(thread, in_exec)
        self.barrier.no_longer_running(state)
        if self.leaving:
            self.detacher.halted(state.text)

    def gone(self, thread: TracedThread) -> None:
        state = self._running.pop(thread.tid, None)
        if state is None:
            return
        if state.plan is not None:
            # Killed while it ran, without a word on how far it had come.
            self._lost += 1
            state.plan = None
            self._states.pop(thread.tid)
            self.walk.leave(state, state.index)
        text = self.spaces.texts.get(thread.process)
        super().gone(thread)
        if self.leaving and text is not None:
            self.detacher.halted(text)
            self.barrier.give_back(text)
        self.barrier.no_longer_running(state)

    def part(self, thread: TracedThread) -> bool:
        self.detacher.part(thread)
        return True

    def homing(self) -> BlockHoming:
        from livepro.engines.block.homing import BlockHoming

        return BlockHoming(self.isa, self.calls.own, self._running, self.spaces.texts, self.watch.hardware)

    # -- processes

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        super().process_started(process, parent)
        self.spaces.begin(process, parent)

    def process_ended(self, process: TracedProcess) -> None:
        super().process_ended(process)
        self.spaces.end(process)

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        return self.spaces.let_go(tid, parent)

    # -- what threads may do before they ask

    def _ahead(self, state: StepThread) -> int:
        assert isinstance(state, BlockThread)
        return len(state.block.code) if state.plan is None else state.plan.length

    def _text_at(self, state: StepThread, address: int, size: int) -> bytes:
        assert isinstance(state, BlockThread)
        return self.planner.text_at(state, address, size)

    # -- at the end

    def _summarise(self) -> None:
        """Say what the user must know to read the counts."""
        self.stats["barred"] = self.barrier.barred
        self._exclusives.tell(self.warnings)
        if self._lost:
            self.warnings.append(
                f"{self._lost} threads were killed without a word on how far they had come; up to "
                f"{LONGEST} blocks of each are not counted."
            )
        led = self.walk.strays + self.walk.unexplained
        if led:
            self.warnings.append(
                f"{led} times a thread was led elsewhere by something else than "
                "the instruction it executed; counts may be off by as many blocks."
            )
