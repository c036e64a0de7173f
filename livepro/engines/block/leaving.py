"""Threads let go: every breakpoint lifted first, then each thread goes on where it stands.

A thread that runs towards a breakpoint must have stopped before that is lifted,
or it would run on uncounted. Such threads are never inside a system call, so
nobody waits long; those that are inside one are stepped, and let go when they stop.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from livepro.engines.base import EngineOptions
from livepro.engines.block.spaces import Spaces
from livepro.engines.block.text import Text
from livepro.engines.block.thread import BlockThread
from livepro.engines.stepping import unstep
from livepro.isa.base import Isa
from livepro.tracee import TracedThread

if TYPE_CHECKING:
    from livepro.engines.block.homing import BlockHoming


class Leaving(Spaces):
    """The part of the block engine that lets threads go."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._under_way: set[int] = set()
        self._parted: list[BlockThread] = []
        self._unwatched: list[TracedThread] = []

    def leave(self) -> None:
        if not self.leaving:
            self._under_way = {tid for tid, state in self._running.items() if state.plan is not None}
        super().leave()

    def homing(self) -> BlockHoming:
        from livepro.engines.block.homing import BlockHoming

        return BlockHoming(self.isa, self._running, self._texts, self._hardware)

    def part(self, thread: TracedThread) -> bool:
        state = self._running.get(thread.tid)
        if state is None:
            text = self._texts.get(thread.process)
            if text is None or text.closed:
                self.tracer.release(thread)
            else:  # it has not been watched yet, and would run into the others' breakpoints
                self._unwatched.append(thread)
                self._halted(thread.tid, text)
            return True
        path = state.plan.ends.get(self._pc(thread.tid)) if state.plan is not None else None
        if path is not None:
            # It has run into a breakpoint: it stands before the terminator.
            site = path.nodes[-1].site
            assert site is not None
            registers = thread.registers()
            setattr(registers, self.isa.registers.pc, site.address)
            thread.set_registers(registers)
            self._stand(state, site.address)
        elif state.plan is None and self._met(state):
            # So it has by a step.
            state.index = len(state.block.code) - 1
            registers = thread.registers()
            setattr(registers, self.isa.registers.pc, state.block.code.addresses[state.index])
            thread.set_registers(registers)
        state.owed = False
        del self._running[thread.tid]
        self._states.pop(thread.tid, None)
        self._leave(state, state.index + state.held)
        unstep(self.isa, thread, state.held)
        self._no_longer_running(state)
        self._parted.append(state)
        self._halted(thread.tid, state.text)
        return True

    @abstractmethod
    def _met(self, state: BlockThread) -> bool:
        """Whether a thread that was stepped has met the breakpoint on its block's terminator."""

    def _halted(self, tid: int, text: Text) -> None:
        """A thread that was running has stopped: with the last of them the breakpoints go."""
        self._under_way.discard(tid)
        if any(self._running[other].text is text for other in self._under_way if other in self._running):
            return
        parted = [state.thread for state in self._parted if state.text is text]
        self._parted = [state for state in self._parted if state.text is not text]
        parted += [thread for thread in self._unwatched if self._texts.get(thread.process) is text]
        self._unwatched = [thread for thread in self._unwatched if thread not in parted]
        if parted:
            text.lift_all(parted[0].process.memory)
        for thread in parted:
            self.tracer.release(thread)

    def gone(self, thread: TracedThread) -> None:
        text = self._texts.get(thread.process)
        super().gone(thread)
        if self.leaving and text is not None:
            self._halted(thread.tid, text)
