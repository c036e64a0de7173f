"""Attach: threads taken over while they run, livepro's memory mapped into a program in full swing.

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

from livepro.engines.step.stepping import refuse_shadow_stack
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.persist.keeping import PersistedCache
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.calling import TargetCalls
from livepro.engines.translate.threads.room import CacheRoom
from livepro.engines.translate.threads.stops import StopQueue
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.jvm.labels import Labeller
from livepro.linux import proc, rseq
from livepro.linux.proc import Mapping
from livepro.linux.wait import TRAP_STATUS
from livepro.tracee import TracedProcess, TracedThread, Tracer
from livepro.tracee.stops import WAIT_FLAGS


class Attacher:
    """Enters processes and threads that run already."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        table: ThreadTable,
        pc: ProgramCounter,
        stops: StopQueue,
        calls: TargetCalls,
        room: CacheRoom,
        persisted: PersistedCache | None,
    ) -> None:
        self._isa = isa
        self._backend = backend
        self._tracer = tracer
        self._table = table
        self._pc = pc
        self._stops = stops
        self._calls = calls
        self._room = room
        self._persisted = persisted
        self._entering: dict[TracedProcess, list[Mapping]] = {}
        self._foreseen: dict[TracedProcess, list[Mapping]] = {}
        self._labellers: dict[TracedProcess, Labeller] = {}

    # -- while the program runs

    def look_ahead(self, process: TracedProcess) -> None:
        """Do what can be done for a process that is attached to while it runs unwatched."""
        if not process.measured:
            return
        try:
            self._calls.look_ahead(process)
        except ProcessLookupError:
            return  # it has ended, or begun another image, as the next stop will tell
        self._entering[process] = [m for m in process.space.mappings if m.executable]
        if self._persisted is not None:
            self._foreseen[process] = self._waited_in(process)
            for mapping in self._foreseen[process]:
                self._persisted.fetch(process.pid, mapping)
        labeller = self._labellers[process] = Labeller(process, lambda start, end: None)
        labeller.prepare()

    def labeller(self, process: TracedProcess) -> Labeller | None:
        """What knows a process's generated code since it was looked ahead, once; None if nothing does."""
        return self._labellers.pop(process, None)

    def _waited_in(self, process: TracedProcess) -> list[Mapping]:
        """The code in which threads wait, to be taken over."""
        found = map(process.space.find, self._waited_at(process))
        return list(dict.fromkeys(mapping for mapping in found if mapping is not None))

    def _waited_at(self, process: TracedProcess) -> list[int]:
        """Where threads that wait will go on: at the system call that they wait in."""
        call = self._backend.system_call
        waiting = self._tracer.to_be_taken(process)
        behind = {pc for tid in waiting if (pc := proc.waits_at(tid)) is not None}
        return [
            pc - len(call) if process.memory.read(pc - len(call), len(call)) == call else pc
            for pc in sorted(behind)
        ]

    def entered(self, process: TracedProcess) -> None:
        """The first of a process's threads is watched: translate what the others wait in."""
        space = self._table.spaces.get(process)
        if space is None:
            return
        for pc in self._waited_at(process):
            if space.memory.caches.of_module(pc) is not None or space.memory.cache_for(pc) is not None:
                space.builder.translate(pc)  # and what they will go on with
                space.registry.find(pc)

    def next_stop(self) -> tuple[int, int]:
        """The next stop (tid, status): threads that are held to be taken over come before those that have met
        new code. Raises ChildProcessError when no thread is left."""
        while self._entering:
            for process in [p for p in self._entering if not self._tracer.to_be_taken(p)]:
                self._all_taken(process, self._entering.pop(process))
            tid, status = os.waitpid(-1, WAIT_FLAGS | os.WNOHANG)
            if not tid:
                break
            state = self._table.states.get(tid) if status == TRAP_STATUS else None
            if state is None or state.mode is not Mode.RUNNING:
                return tid, status
            self._stops.behind.append((tid, status))
        return self._stops.next()

    def _all_taken(self, process: TracedProcess, code: list[Mapping]) -> None:
        """What threads that were not watched yet have unmapped or made something else may have been
        translated before that."""
        space = self._table.spaces.get(process)
        if space is None:
            return
        process.remapped()
        now = set(process.space.mappings)
        for mapping in code:
            if mapping not in now:
                space.drop(mapping.start, mapping.end)
        space.check_tables()

    # -- one thread after the other

    def check_takeable(self, thread: TracedThread) -> None:
        """Raises LiveproError for a thread that cannot run from a code cache."""
        refuse_shadow_stack(self._isa, thread)
        cause = self._backend.obstacle(thread.registers())
        if cause:
            raise LiveproError(
                f"Thread {thread.tid} of process {thread.process.pid} {cause}: it cannot be translated.",
                "Use `--engine block` or `--engine step`.",
            )

    def abort_sequence(self, thread: TracedThread) -> None:
        """As the kernel would have, had the thread run on where it was stopped."""
        pc = self._pc.of(thread.tid)
        goes_on = rseq.abort(thread.tid, pc, thread.read, thread.write)
        if goes_on != pc:
            self._pc.lead(thread.tid, goes_on)

    def open_foreseen(self, state: TranslatedThread) -> None:
        """Give caches to the modules that threads of the first one's process wait in."""
        for mapping in self._foreseen.pop(state.thread.process, ()):
            self._room.open_module(state, mapping)

    def take(self, state: TranslatedThread) -> bool:
        """Place a thread that waits in a system call behind that call's copy; False if it
        does not wait in one, or its call must be begun anew natively."""
        thread = state.thread
        registers = thread.registers()
        if not self._isa.rewind_call(registers):
            return False
        pc = getattr(registers, self._isa.registers.pc)
        space: CodeCache = state.space
        block = space.registry.find(pc) if self._room.translate(state, pc, eager=0) is not None else None
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
        self._pc.lead(thread.tid, block.start + behind)
        return True
