"""Threads in the code cache: the stops that they make there, and how they go on.

A thread's program counter is in a cache while it runs. Instructions that must
be executed at their own place are `native`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from livepro.engines.debuggers import Debuggers
from livepro.engines.inprocess import InProcess
from livepro.engines.translate import layout
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.stop_reasons import (
    BudgetStop,
    ChangedStop,
    ChunkStop,
    MissStop,
    NativeStop,
    PinnedStop,
    RegionStop,
    SupersededStop,
)
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.signals.deferring import Deferral
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.native import NativeStepper
from livepro.engines.translate.threads.room import CacheRoom
from livepro.engines.translate.threads.stops import StopQueue
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.linux.wait import TRAP_STATUS
from livepro.tracee import Tracer
from livepro.tracee.stops import failed, killed

_TURNS = 8
"""How often stops are answered until a code cache is left out whose threads have come to nothing new
meanwhile: to have each stand by takes some 50 us."""


class Detaching(Protocol):
    """What becomes of a thread instead of going on, once detaching has been asked for."""

    def part_here(self, state: TranslatedThread) -> None:
        """Let a thread in the cache go, from the next boundary between instructions on."""

    def park(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let a thread go at the program's address `pc` with these registers."""


class Metering(Protocol):
    """What a region of interest has to say to a thread that goes on."""

    def stops_early(self, state: TranslatedThread) -> bool:
        """Whether a thread's share of the region's instructions ends before its block does."""

    def go_on(self, state: TranslatedThread, address: int, within: Fragment | None) -> None:
        """Let such a thread run on from a cache address, in the block `within` if that is known."""

    def arrived(self, state: TranslatedThread, stop: RegionStop) -> None:
        """A thread stands before the first instruction of a block, which may be armed."""

    def arrives_uncopied(self, state: TranslatedThread, pc: int) -> None:
        """A thread stands before the instruction at `pc`, which may be armed and has no fragment."""


class ThreadRunner:
    """Answers the stops that threads make in their code caches, and lets them go on.

    `detaching` and `metering` are asked when they are needed: they are made after the runner.
    `missed` counts indirect branches to what the lookup table does not have, `answered` the stops at new code
    that compiled code has answered alone.
    """

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        table: ThreadTable,
        pc: ProgramCounter,
        stops: StopQueue,
        ledger: Ledger,
        deferral: Deferral,
        syscalls: SyscallMonitor,
        room: CacheRoom,
        inprocess: InProcess,
        debuggers: Debuggers,
        detaching: Callable[[], Detaching],
        metering: Callable[[], Metering],
    ) -> None:
        self.missed = self.answered = 0
        self._turn = 0
        self._lately: dict[CodeCache, int] = {}  # and in which turn it was
        self._backend = backend
        self._tracer = tracer
        self._table = table
        self._pc = pc
        self._stops = stops
        self._ledger = ledger
        self._room = room
        self._detaching = detaching
        self._metering = metering
        self.native = NativeStepper(
            isa, backend, tracer, pc, ledger, deferral, syscalls, room, inprocess, debuggers, onward=self
        )

    def watch(self, wait: Callable[[], tuple[int, int]]) -> None:
        """Deal with the stops that `wait` returns (tid, status) until no thread is left."""
        threads, dispatch, states = self._tracer.threads, self._tracer.dispatch, self._table.states
        stops, running = self._stops, Mode.RUNNING
        while threads or self._tracer.busy:
            try:
                tid, status = wait()
            except ChildProcessError:
                break
            stops.count += 1
            if status == TRAP_STATUS:
                state = states.get(tid)
                if state is not None and state.mode is running:
                    try:
                        self._stopped_in_cache(state)
                    except OSError:
                        # Else killed meanwhile. (One that has been let go by now was asked nothing more.)
                        if tid not in threads or not killed(tid):
                            raise
                    continue
            dispatch(tid, status)

    # -- stops in the cache

    def _stopped_in_cache(self, state: TranslatedThread) -> None:
        tid, space = state.thread.tid, state.space
        pc = self._pc.of(tid) - self._pc.advance
        target = space.linker.exits.get(pc)
        if target is not None:
            self._came(space)
            if not (space.new_code.serves(target) and self._answer(tid)):
                self.enter(state, target)
                self._answer_next(space)
            return
        stop = space.memory.stop_at(pc)
        if stop is None:
            self._tracer.dispatch(tid, TRAP_STATUS)
            return
        if isinstance(stop, MissStop):
            self._came(space)
            if not self._answer(tid):
                self._missed(state)
                self._answer_next(space)
        elif isinstance(stop, NativeStop):
            self.native.begin(state, stop)
        elif isinstance(stop, SupersededStop):
            self.enter(state, stop.pc)
        elif isinstance(stop, PinnedStop):
            self._woke(state, stop)
        elif isinstance(stop, ChangedStop):
            self._changed(state, stop)
        elif isinstance(stop, BudgetStop):
            self.budget_spent(state, stop)
            self.go(state, stop.resume)
        elif isinstance(stop, ChunkStop):
            self.chunk_full(state, stop)
            self.go(state, stop.resume)
            if state.trace is not None:
                state.trace.gone_on()
        else:
            self._metering().arrived(state, stop)

    def _answer_next(self, space: CodeCache) -> None:
        """Who has come to new code will probably come to more."""
        if not self._tracer.leaving and space.new_code.possible:
            self._came(space)
            self._stops.answer = self._answer

    def _came(self, space: CodeCache) -> None:
        """A thread of a code cache has come to new code, just now."""
        self._lately[space] = self._turn

    def _answer(self, tid: int = 0) -> bool:
        """Have stops at new code answered in the code caches where threads have come to some lately, that of
        `tid` first, if it has made one; the next one that is something else is left to be dealt with.
        Returns whether there were any."""
        if self._tracer.leaving:
            return False
        running: dict[CodeCache, list[int]] = {
            space: [] for space, turn in self._lately.items() if turn > self._turn - _TURNS
        }
        for each, state in self._table.states.items():
            if state.mode is Mode.RUNNING and state.space in running and not state.lends:
                running[state.space].append(each)
        self._lately = {space: self._lately[space] for space, its in running.items() if its}
        self._turn += 1
        spaces = [each for each in self._lately if each.new_code.possible and not each.flusher.full]
        if not spaces:
            return False
        tids = [(each, number) for number, space in enumerate(spaces) for each in running[space]]
        done = self._room.answer(spaces, tids, (tid, TRAP_STATUS if tid else 0))
        stops = sum(done.stops)
        if done.heard is not None and (stops or not tid):
            self._stops.behind.append(done.heard)
        if not stops:
            return False
        self._stops.count += stops - (1 if tid else 0)
        self.answered += stops
        self.missed += done.missed
        for number, space in enumerate(spaces):
            if not done.stops[number]:
                continue
            self._came(space)
            try:
                self._room.see_to_the_rest(space)
            except OSError:
                if not any(killed(tid) for tid, its in tids if its == number):
                    raise
        self._stops.answer = self._answer
        return True

    def _woke(self, state: TranslatedThread, stop: PinnedStop) -> None:
        """Back from a system call in a fragment that was dropped meanwhile."""
        block = stop.block
        registers = state.thread.registers()
        self._backend.behind_syscall(registers, stop.pc)
        self._backend.keep_own(registers, state.words)
        state.thread.set_registers(registers)
        behind = self._room.in_force(state, block, stop.index, stop.resume)
        if behind is not None:
            self.go(state, behind)
            return
        self._ledger.record_partial(state, block, stop.index, counted=stop.counted)
        self.enter(state, stop.pc)

    def _missed(self, state: TranslatedThread) -> None:
        """An indirect branch to an address that the lookup table does not have."""
        target = self._backend.branch_target(state.thread.tid)
        faults = self._backend.faults_before(target)
        if self._tracer.leaving and not faults:
            registers = state.thread.registers()
            self._backend.restore_spills(registers, state.words)
            self.park(state, registers, target)
            return
        self.missed += 1
        space = state.space
        if not faults and self._room.translate(state, target, landing=True) is not None:
            self.go(state, space.memory.lookup.landings[target])
            return
        registers = state.thread.registers()
        self._backend.restore_spills(registers, state.words)
        if faults:
            # The processor faults before such a branch retires: undo what it did, and
            # let it fault at its own place. (Behind a return from a signal handler the fault
            # is at the target.)
            site = int(state.words[layout.SITE // 8]) & 0xFFFF_FFFF
            if site != layout.NOWHERE:
                source = space.registry.counted_in(site)
                written = self._backend.undo_branch(registers, source.source.facts[-1], state.words)
                if written is not None:
                    state.thread.write(written[0], written[1].to_bytes(8, "little"))
                state.native = NativeStop(source, len(source.source.facts) - 1, 0, True)
                target = source.source.pc + source.source.offsets[-2]
                state.thread.set_registers(registers)
                self.native.step(state, target)
                return
        state.thread.set_registers(registers)
        self._step_uncopied(state, target)

    def budget_spent(self, state: TranslatedThread, stop: BudgetStop) -> None:
        """An interval of the thread's basic block vectors ends in the stop's block."""
        state.budget.withdraw(len(stop.block.source.facts))
        if state.clock is not None:
            state.clock.ran_out(stop.block.slot)
        state.budget.level()
        state.within = stop.block

    @staticmethod
    def chunk_full(state: TranslatedThread, stop: ChunkStop) -> None:
        """The thread's chunk of records is full."""
        assert state.trace is not None
        state.trace.full(stop.block)

    def _changed(self, state: TranslatedThread, stop: ChangedStop) -> None:
        """The program has changed code that was translated."""
        registers = state.thread.registers()
        self._backend.restore_spills(registers, state.words)
        state.thread.set_registers(registers)
        self.enter(state, self.forget(state, stop))

    def forget(self, state: TranslatedThread, stop: ChangedStop) -> int:
        """Drop a changed block; returns the program's address that the thread is at."""
        block = stop.block
        self._ledger.record_partial(state, block, stop.index, counted=stop.counted)
        found = state.space.registry.find(block.source.pc)
        if found is not None and found.slot == block.slot:
            state.space.invalidator.forget(block.source.pc)
        return block.source.pc + block.source.offsets[stop.index]

    # -- going on

    def go(self, state: TranslatedThread, address: int) -> None:
        """Let a thread run on from a cache address; it is let go if detaching has been asked for."""
        within, state.within = state.within, None
        if not self._tracer.leaving and self._metering().stops_early(state):
            self._metering().go_on(state, address, within)
        else:
            self.go_unmetered(state, address)

    def go_unmetered(self, state: TranslatedThread, address: int) -> None:
        """The same for a thread whose share of a region, if it has one, has been looked at."""
        tid = state.thread.tid
        if self._tracer.leaving:
            self._pc.lead_on(state, address)
            state.mode = Mode.RUNNING
            self._detaching().part_here(state)
            return
        state.mode = Mode.RUNNING
        state.led_to = address
        self._pc.lead_on(state, address)
        if ptrace.raw(ptrace.PTRACE_CONT, tid, None, None) == -1:
            failed(tid)
        state.led_to = 0

    def enter(self, state: TranslatedThread, pc: int) -> None:
        """Let a thread run on from the program's address `pc`, where a block starts; it is let go there if
        detaching has been asked for."""
        if self._tracer.leaving:
            self.park(state, state.thread.registers(), pc)
            return
        start = self._room.translate(state, pc)
        if start is None:
            self._step_uncopied(state, pc)
        else:
            self.go(state, start)

    def _step_uncopied(self, state: TranslatedThread, pc: int) -> None:
        """Let a thread execute the instruction at `pc`, which has no fragment with a stop for a region."""
        self._metering().arrives_uncopied(state, pc)
        self.native.step_uncopied(state, pc)

    def park(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let a thread go for good at the program's address `pc`, with these registers."""
        self._detaching().park(state, registers, pc)
