"""Threads taken over while they run: livepro's memory mapped into a program in full swing.

Nothing of the program's own is written to, not even for a moment, since other
threads run: calls are made through an instruction that is there anyway (`calling`).
One thread only is held while the memory is mapped. The others run on unwatched until
the code they wait in has been translated, and are then held for a moment each.

A thread that waits inside a system call is placed behind the copy of that call's
instruction; the kernel winds it back by the instruction's length, as it would have
at the original.
"""

from __future__ import annotations

import os
import signal
from abc import abstractmethod
from collections import deque

from livepro.engines.base import EngineOptions
from livepro.engines.stepping import refuse_shadow_stack
from livepro.engines.translate import layout, memory
from livepro.engines.translate.calling import SteppedCalls, find_gadget, stop_anew
from livepro.engines.translate.delivery import SignalDelivery
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.jvm.labels import Labeller
from livepro.linux import proc, ptrace, rseq
from livepro.linux.proc import Mapping
from livepro.linux.wait import TRAP_STATUS
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.stops import WAIT_FLAGS

_PLACES = 3  # mappings of the program's own may come in between


def is_event(info: ptrace.SignalInfo) -> bool:
    """Whether a stop is a ptrace event's, by its siginfo: the event is in si_code's second byte."""
    return bool(info.code >> 8)


class TakingOver(SignalDelivery):
    """The part of the translate engine that enters processes and threads which run already."""

    takes_singly = True

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._entering: dict[TracedProcess, list[Mapping]] = {}
        self._foreseen: dict[TracedProcess, list[Mapping]] = {}
        self._labellers: dict[TracedProcess, Labeller] = {}
        self._behind: deque[tuple[int, int]] = deque()

    # -- while the program runs

    def look_ahead(self, process: TracedProcess) -> None:
        if not process.measured:
            return
        self._gadgets[process] = find_gadget(process, self._backend.system_call)
        self._entering[process] = [m for m in process.space.mappings if m.executable]
        if self._shelf is not None:
            self._foreseen[process] = self._waited_in(process)
            for mapping in self._foreseen[process]:
                self._shelf.fetch(process.pid, mapping)
        labeller = self._labellers[process] = Labeller(process, lambda start, end: None)
        labeller.prepare()

    def _waited_in(self, process: TracedProcess) -> list[Mapping]:
        """The code in which threads wait, to be taken over."""
        found = map(process.space.find, self._waited_at(process))
        return list(dict.fromkeys(mapping for mapping in found if mapping is not None))

    def _waited_at(self, process: TracedProcess) -> list[int]:
        """Where threads that wait will go on: at the system call that they wait in."""
        call = self._backend.system_call
        behind = {pc for tid in self.tracer.to_be_taken(process) if (pc := proc.waits_at(tid)) is not None}
        return [
            pc - len(call) if process.memory.read(pc - len(call), len(call)) == call else pc
            for pc in sorted(behind)
        ]

    def entered(self, process: TracedProcess) -> None:
        space = self._spaces.get(process)
        if space is None:
            return
        for pc in self._waited_at(process):
            if space.caches.of_module(pc) is not None or space.cache_for(pc) is not None:
                space.translate(pc)  # and what they will go on with
                space.find(pc)

    def _wait(self) -> tuple[int, int]:
        """Threads that are held to be taken over come before those that have met new code."""
        while self._entering:
            for process in [p for p in self._entering if not self.tracer.to_be_taken(p)]:
                self._all_taken(process, self._entering.pop(process))
            tid, status = os.waitpid(-1, WAIT_FLAGS | os.WNOHANG)
            if not tid:
                break
            state = self._states.get(tid) if status == TRAP_STATUS else None
            if state is None or state.mode is not Mode.RUNNING:
                return tid, status
            self._behind.append((tid, status))
        return self._behind.popleft() if self._behind else super()._wait()

    def _all_taken(self, process: TracedProcess, code: list[Mapping]) -> None:
        """What threads that were not watched yet have unmapped or made something else may have been
        translated before that."""
        space = self._spaces.get(process)
        if space is None:
            return
        process.remapped()
        now = set(process.space.mappings)
        for mapping in code:
            if mapping not in now:
                space.drop(mapping.start, mapping.end)
        space.check_tables()

    # -- one thread after the other

    def _calls(self, process: TracedProcess, tid: int) -> SteppedCalls:
        """Means to make system calls as a stopped thread of a process that was attached to."""
        gadget = self._gadgets.get(process)
        if gadget is None:
            gadget = self._gadgets[process] = find_gadget(process, self._backend.system_call)
        return SteppedCalls(process, tid, self.isa.registers, self._backend, gadget)

    def _sharing(self, thread: TracedThread, gadget: int) -> memory.Sharing:
        process = thread.process
        if not process.attached:
            return super()._sharing(thread, gadget)
        return memory.Sharing(self._calls(process, thread.tid), process.memory, self._numbers, 0)

    def _open_running(self, thread: TracedThread) -> CodeSpace:
        """Map livepro's memory into a process that runs, through one of its threads. Raises
        LiveproError or OSError when that is refused; nothing is left there then."""
        process = thread.process
        for attempt in range(1, _PLACES + 1):
            process.remapped()
            made: list[memory.SharedFile] = []
            try:
                space = self._lay_out(thread, self._pc(thread.tid), made)
                if process in self._labellers:
                    space.generated.use(self._labellers.pop(process))
                self._note_trap(thread, space)
                break
            except (OSError, LiveproError) as error:
                calls = self._calls(process, thread.tid)
                for file in made:
                    calls.call(self._numbers["munmap"], file.base, file.size)
                if not isinstance(error, FileExistsError) or attempt == _PLACES:
                    raise
        return space

    def _note_trap(self, thread: TracedThread, space: CodeSpace) -> None:
        """Ask the kernel for the program's handler of SIGTRAP, which it will forget."""
        actions = self._actions[thread.process]
        if not actions.caught(thread.tid, signal.SIGTRAP):
            return
        calls, at = self._calls(thread.process, thread.tid), layout.SCRATCH_ACTION
        there = space.memory.area_address(0) + at
        calls.call(self._numbers["rt_sigaction"], signal.SIGTRAP, 0, there, 8)
        actions.trap = space.memory.area(0)[at // 8 : at // 8 + 4].tobytes()

    def stopped(self, thread: TracedThread) -> None:
        super().stopped(thread)
        info = ptrace.signal_info(thread.tid)
        if info is not None and not is_event(info):
            stop_anew(thread.tid)  # calls made when it was taken over have brought it out of the stop

    @abstractmethod
    def _lay_out(
        self, thread: TracedThread, gadget: int, made: list[memory.SharedFile] | None = None
    ) -> CodeSpace:
        """Map livepro's memory into a process, through a stopped thread of it whose code is near
        `gadget`; what has been mapped is added to `made`."""

    def _check_takeable(self, thread: TracedThread) -> None:
        """Raises LiveproError for a thread that cannot run from a code cache."""
        refuse_shadow_stack(self.isa, thread)
        cause = self._backend.obstacle(thread.registers())
        if cause:
            raise LiveproError(
                f"Thread {thread.tid} of process {thread.process.pid} {cause}: it cannot be translated.",
                "Use `--engine block` or `--engine step`.",
            )

    def _abort_sequence(self, thread: TracedThread) -> None:
        """As the kernel would have, had the thread run on where it was stopped."""
        pc = self._pc(thread.tid)
        goes_on = rseq.abort(thread.tid, pc, thread.read, thread.write)
        if goes_on != pc:
            self._lead(thread.tid, goes_on)

    def _take(self, state: TranslatedThread) -> bool:
        """Place a thread that waits in a system call behind that call's copy; False if it
        does not wait in one, or its call must be begun anew natively."""
        thread = state.thread
        registers = thread.registers()
        if not self.isa.rewind_call(registers):
            return False
        pc = getattr(registers, self.isa.registers.pc)
        block = state.space.find(pc) if self._translate(state, pc, eager=0) is not None else None
        behind = None
        if block is not None:
            behind = next((at for at, index in block.details.behind_syscall.items() if index == 1), None)
        if block is None or behind is None:
            self._backend.forget_call(registers)
            thread.set_registers(registers)
            return False
        if behind >= block.counted:
            # Its counter has been passed by, though the block will be executed from its start.
            state.tally.entries[block.slot] += 1
            state.adjust(block.slot, len(block.source.facts), 0)
        self._lead(thread.tid, block.start + behind)
        return True
