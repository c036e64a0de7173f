"""Threads let go: every breakpoint lifted first, then each thread goes on where it stands.

A thread that runs towards a breakpoint must have stopped before that is lifted,
or it would run on uncounted. Such threads are never inside a system call, so
nobody waits long; those that are inside one are stepped, and let go when they stop.
"""

from __future__ import annotations

from collections.abc import Callable

from livepro.engines.block.barring import Barrier
from livepro.engines.block.text import Text
from livepro.engines.block.thread import BlockThread
from livepro.engines.block.walking import BlockWalk
from livepro.engines.step.calling import MaskedCalls
from livepro.engines.step.stepping import StepThread, end_trace, unstep
from livepro.isa.base import Isa
from livepro.tracee import TracedProcess, TracedThread, Tracer


class Detacher:
    """Lets threads go.

    `states` and `running` are the threads by tid, `texts` the code of processes; `pc` reads the program
    counter of a thread (tid); `met` says of a thread that was stepped whether it has met the breakpoint on
    its block's terminator.
    """

    def __init__(
        self,
        isa: Isa,
        tracer: Tracer,
        states: dict[int, StepThread],
        running: dict[int, BlockThread],
        texts: dict[TracedProcess, Text],
        walk: BlockWalk,
        barrier: Barrier,
        calls: MaskedCalls,
        pc: Callable[[int], int],
        met: Callable[[BlockThread], bool],
    ) -> None:
        self._isa = isa
        self._tracer = tracer
        self._states = states
        self._running = running
        self._texts = texts
        self._walk = walk
        self._barrier = barrier
        self._calls = calls
        self._pc = pc
        self._met = met
        self._parted: list[BlockThread] = []
        self._unwatched: list[TracedThread] = []

    def part(self, thread: TracedThread) -> None:
        """Let a thread go that has stopped, once no thread runs towards a breakpoint."""
        state = self._running.get(thread.tid)
        if state is None:
            text = self._texts.get(thread.process)
            if text is None or text.closed:
                self._tracer.release(thread)
            else:  # it has not been watched yet, and would run into the others' breakpoints
                self._unwatched.append(thread)
                self.halted(text)
            return
        path = state.plan.ends.get(self._pc(thread.tid)) if state.plan is not None else None
        if path is not None:
            # It has run into a breakpoint: it stands before the terminator.
            site = path.nodes[-1].site
            assert site is not None
            self._lead(thread, site.address)
            self._walk.stand(state, site.address)
        elif state.plan is None and self._met(state):
            # So it has by a step.
            state.index = len(state.block.code) - 1
            self._lead(thread, state.block.code.addresses[state.index])
        state.owed = False
        del self._running[thread.tid]
        self._states.pop(thread.tid, None)
        executed = state.index + state.held
        self._walk.leave(state, executed)
        end_trace(state, state.block.code.addresses[executed])
        unstep(self._isa, thread, state.held)
        self._barrier.no_longer_running(state)
        self._parted.append(state)
        self.halted(state.text)

    def _lead(self, thread: TracedThread, pc: int) -> None:
        registers = thread.registers()
        setattr(registers, self._isa.registers.pc, pc)
        thread.set_registers(registers)

    def halted(self, text: Text) -> None:
        """A thread has stopped for good: with the last that runs towards a breakpoint these go."""
        # One that waits inside its vfork for a thread which has stopped does not run towards any.
        waits = {state.thread.process.suspends for state in self._parted if state.text is text}
        under_way = (state for state in self._running.values() if state.plan is not None)
        if any(state.text is text and state.thread.tid not in waits for state in under_way):
            return
        parted = [state.thread for state in self._parted if state.text is text]
        self._parted = [state for state in self._parted if state.text is not text]
        parted += [thread for thread in self._unwatched if self._texts.get(thread.process) is text]
        self._unwatched = [thread for thread in self._unwatched if thread not in parted]
        if parted:
            text.lift_all(parted[0].process.memory)
        for thread in parted:
            self._tracer.release(thread, self._calls.leave(thread))
