"""Threads let go: each back in its own code with its own registers, and livepro's memory unmapped.

Once detaching has been asked for, every thread is told to make one more stop. Whatever stop
it makes then, it is brought to a boundary between the program's instructions, what it executed
of its block is counted, and it is let run. The last one to run in an address space takes
livepro's memory down first. Counters are added up once nobody waits any more.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from typing import Any

import numpy as np

from livepro.engines.base import EngineOptions
from livepro.engines.translate import layout
from livepro.engines.translate.cache import Place, Stop
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.taking import TakingOver
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.seize import caught
from livepro.tracee.stops import in_hand, trap_pending, unless_killed


class Leaving(TakingOver):
    """The part of the translate engine that lets threads go."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._parted: list[TranslatedThread] = []
        self._waiting: list[TracedThread] = []

    def leave(self) -> None:
        if not self.leaving:
            for space in self._spaces.values():
                space.generated.repair()  # before anybody waits for it
                if space.guard is not None:
                    space.guard.close()
        super().leave()

    def part(self, thread: TracedThread) -> bool:
        state = self._states.get(thread.tid)
        if state is None:
            space = self._spaces.get(thread.process)
            if space is not None and self.leaving and not self._in_use(space):
                self._take_down(thread.process, thread.tid, space)  # whoever was in it has ended
            self.tracer.release(thread)
            if space is not None:
                self._done_with(thread.process, space)
            return True
        if state.mode in (Mode.DELIVERING, Mode.SETTLING) or trap_pending(thread.tid):
            return False  # the stop to come says where it is
        if state.change is not None:
            self._changed_action(state, made=self._pc(thread.tid) != state.at)
        if self._changing:
            # Somebody tells the kernel of a handler in the cache: nobody who is out may enter it.
            self._waiting.append(thread)
            return True
        if state.mode is Mode.NATIVE:
            pc = self._pc(thread.tid)
            stop = state.native
            if stop is not None and stop.block is not None:
                self._uncount(state, stop.block, stop.index + (pc != state.at), counted=stop.counted)
            self._park(state, thread.registers(), pc)
        else:
            self._part_here(state)
        return True

    def _part_here(self, state: TranslatedThread) -> None:
        """Let a thread in the cache go, from the next boundary between instructions on."""
        pc = self._pc(state.thread.tid)
        if not state.space.holds(pc):  # an error came between
            self._park(state, state.thread.registers(), pc)
            return
        place = state.space.locate(pc)
        if place is not None and not place.exact and self._before_call(place, pc):
            # In the check of the call's number, which has changed rcx. So will the call, and
            # stepping into that could take for ever.
            self._uncount(state, place.block, place.index, counted=place.counted)
            self._park(state, state.thread.registers(), place.pc)
            return
        self._deliver_or_settle(state, state.thread.registers())

    @staticmethod
    def _before_call(place: Place, pc: int) -> bool:
        """Whether a cache address is in what leads to a system call, and is none of the counter's
        or the comparison's before or behind that."""
        block, index = place.block, place.index
        behind = next((at for at, i in block.details.behind_syscall.items() if i == index + 1), None)
        # (A comparison out of line has no places of instructions at all.)
        return (
            behind is not None and not block.source.leaves and block.marks[index] <= pc - block.start < behind
        )

    # -- where threads would be let run on

    def _go(self, state: TranslatedThread, address: int) -> None:
        if not self.leaving:
            super()._go(state, address)
            return
        self._lead(state.thread.tid, address)
        state.mode = Mode.RUNNING
        self._part_here(state)

    def _enter(self, state: TranslatedThread, pc: int) -> None:
        if not self.leaving:
            super()._enter(state, pc)
            return
        self._park(state, state.thread.registers(), pc)

    def _missed(self, state: TranslatedThread) -> None:
        target = self._backend.branch_target(state.thread.tid)
        if not self.leaving or self._backend.faults_before(target):
            super()._missed(state)
            return
        registers = state.thread.registers()
        self._backend.give_back(registers, state.words)
        self._park(state, registers, target)

    def _begin_native(self, state: TranslatedThread, stop: Stop) -> None:
        block = stop.block
        if not self.leaving or block is None:
            super()._begin_native(state, stop)
            return
        self._uncount(state, block, stop.index, counted=stop.counted)
        self._park(state, state.thread.registers(), block.source.pc + block.source.offsets[stop.index])

    def _deliver(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        if self.leaving and state.held is None:
            self._park(state, registers, pc)
        else:
            super()._deliver(state, registers, pc)

    # -- letting go

    @abstractmethod
    def _close(self, state: TranslatedThread) -> None:
        """Take a thread's counters down and give its area back."""

    def _park(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let a thread go at the program's address `pc` with these registers, but its own segment base."""
        thread, space = state.thread, state.space
        with unless_killed(thread.tid):
            self._restore_mask(state)
            setattr(registers, self.isa.registers.pc, pc)
            self._backend.set_own(thread.tid, registers, state.words, state.program_base)
            actions = self._actions[thread.process]
            if actions.to_tell():
                # Before any thread is out: none must enter a handler in the cache from there.
                self._give_handlers_back(thread.process, thread.tid, space)
                actions.forget()
                actions.trap = None
        state.mode = Mode.PARTED
        last = not self._in_use(space)
        if last:
            self._take_down(thread.process, thread.tid, space)
        self.tracer.let_run(thread)
        self._parted.append(state)
        self._let_wait_no_longer()
        if last:
            self._close_parted(space)

    def _close_parted(self, space: CodeSpace) -> None:
        """Add up what threads that have been let go have counted."""
        parted = [state for state in self._parted if state.space is space]
        self._parted = [state for state in self._parted if state.space is not space]
        for state in parted:
            self._close(state)
        for state in parted:
            self.tracer.left(state.thread)

    def _done_with(self, process: TracedProcess, space: CodeSpace) -> None:
        """A thread of a process is gone: if it was the last in livepro's memory, and others have been let
        go, that is unmapped through one of those.

        Not while one is on its way out: who is let go may be in an exec by now, which waits for that
        one, and to seize it would wait for the exec (de_thread in fs/exec.c, ptrace_attach in
        kernel/ptrace.c).
        """
        if not self.leaving or self._in_use(space):
            return
        traced = any(thread.process is process for thread in self.tracer.threads.values())
        if traced or self.tracer.to_be_taken(process):
            return
        if any(state.space is space for state in self._parted):
            with contextlib.suppress(ProcessLookupError):
                for tid in proc.threads(process.pid):
                    with contextlib.suppress(OSError), caught(tid):
                        registers = ptrace.get_registers(tid, self.isa.registers.structure)
                        if self.isa.restart_call(registers):
                            ptrace.set_registers(tid, registers)
                        self._take_down(process, tid, space)
                        break
            self._close_parted(space)

    def _let_wait_no_longer(self) -> None:
        """Let those go that had to wait for another thread, if it was the one."""
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            if in_hand(thread.tid):
                self.part(thread)

    def _give_handlers_back(self, process: TracedProcess, tid: int, space: CodeSpace) -> None:
        """Tell the kernel, through a stopped thread that is out of the cache, of the handlers
        that the program itself has set."""
        calls = self._calls(process, tid)
        at = layout.SCRATCH_ACTION
        for number, action in self._actions[process].to_tell().items():
            space.memory.area(0)[at // 8 : at // 8 + 4] = np.frombuffer(action, np.uint64)
            calls.call(self._numbers["rt_sigaction"], number, space.memory.area_address(0) + at, 0, 8)

    def _in_use(self, space: CodeSpace) -> bool:
        """Whether a thread may yet be in one of a space's caches."""
        if any(s.space is space and s.mode is not Mode.PARTED for s in self._states.values()):
            return True
        born = self.tracer.newborn
        return any(
            self._spaces.get(process) is space
            or (process.shares_memory and self._inherited.get(process) is space)
            for process in born
        )

    def _take_down(self, process: TracedProcess, tid: int, space: CodeSpace) -> None:
        """Unmap livepro's memory, through a stopped thread that is out of it. Nothing is done where that
        has been done, or the process has begun another image."""
        memory = space.memory
        if not memory.data.mapped_in(tid):
            return
        files = [memory.data, *memory.windows, *(ground.file for ground in space.grounds)]
        calls = self._calls(process, tid)
        with unless_killed(tid):
            # What tells that it has been done goes last.
            for file in reversed(files):
                calls.call(self._numbers["munmap"], file.base, file.size)
