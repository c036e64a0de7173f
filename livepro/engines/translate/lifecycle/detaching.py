"""Detach: threads let go, each back in its own code with its own registers, and livepro's memory unmapped.

Once detaching has been asked for, every thread is told to make one more stop. Whatever stop
it makes then, it is brought to a boundary between the program's instructions, what it executed
of its block is counted, and it is let run. The last one to run in an address space takes
livepro's memory down first. Counters are added up once nobody waits any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Place
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.signals.actions import SignalActions
from livepro.engines.translate.signals.deferring import Deferral
from livepro.engines.translate.signals.returning import give_back
from livepro.engines.translate.signals.settling import StateTranslation
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.calling import TargetCalls
from livepro.engines.translate.threads.native import NativeStepper
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace
from livepro.tracee import TracedProcess, TracedThread, Tracer
from livepro.tracee.seize import caught
from livepro.tracee.stops import in_hand, trap_pending, unless_killed


class Detacher:
    """Lets threads go. `close` takes a thread's counters down and gives its area back."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        table: ThreadTable,
        pc: ProgramCounter,
        calls: TargetCalls,
        ledger: Ledger,
        deferral: Deferral,
        syscalls: SyscallMonitor,
        native: NativeStepper,
        translation: StateTranslation,
        close: Callable[[TranslatedThread], None],
    ) -> None:
        self._isa = isa
        self._numbers = isa.syscalls.numbers
        self._backend = backend
        self._tracer = tracer
        self._table = table
        self._pc = pc
        self._calls = calls
        self._ledger = ledger
        self._deferral = deferral
        self._syscalls = syscalls
        self._native = native
        self._translation = translation
        self._close = close
        self._parted: list[TranslatedThread] = []
        self._waiting: list[TracedThread] = []
        self._held: list[tuple[TranslatedThread, Any, int]] = []

    def begin(self) -> None:
        """Detaching has been asked for: do what must be done before any thread is waited for."""
        for space in self._table.spaces.values():
            space.generated.repair()
            if space.trust.guard is not None:
                space.trust.guard.close()

    def part(self, thread: TracedThread) -> bool:
        """Let a thread go that has stopped; False if that can only be done at its next stop."""
        state = self._table.states.get(thread.tid)
        if state is None:
            space = self._table.spaces.get(thread.process)
            if space is not None and self._tracer.leaving and not self._in_use(space):
                self.take_down(thread.process, thread.tid, space)  # all that were in it have ended
            self._tracer.release(thread)
            if space is not None:
                self.done_with(thread.process, space)
            return True
        if state.mode in (Mode.DELIVERING, Mode.SETTLING) or trap_pending(thread.tid):
            return False  # the stop to come says where it is
        if state.change is not None:
            self._syscalls.action_changed(state, made=self._pc.of(thread.tid) != state.at)
        self._syscalls.unaltered_made(state, made=False)
        if self._syscalls.changing:  # see `park`
            self._waiting.append(thread)
            return True
        if state.mode is Mode.NATIVE:
            pc = self._pc.of(thread.tid)
            stop = state.native
            if stop is not None:
                executed = stop.index + (pc != state.at)
                self._ledger.record_partial(state, stop.block, executed, counted=stop.counted)
            self.park(state, thread.registers(), pc)
        else:
            self.part_here(state)
        return True

    def part_here(self, state: TranslatedThread) -> None:
        """Let a thread in the cache go, from the next boundary between instructions on."""
        pc = self._pc.of(state.thread.tid)
        if not state.space.memory.holds(pc):  # an error came between
            self.park(state, state.thread.registers(), pc)
            return
        place = state.space.memory.locate(pc)
        if place is not None and not place.exact and before_call(place, pc):
            # In the check of the call's number, which has changed rcx. So will the call, and
            # stepping into that could take for ever.
            self._ledger.record_partial(state, place.block, place.index, counted=place.counted)
            self.park(state, state.thread.registers(), place.pc)
            return
        self._translation.settle(state, state.thread.registers())

    def park(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let a thread go at the program's address `pc` with these registers, but its own segment base. It
        stands still while another thread tells the kernel of a handler in the cache: none that is out may
        enter that."""
        if self._syscalls.changing:
            self._held.append((state, registers, pc))
            return
        self._native.take_off_iterations(state)
        if state.trace is not None:
            state.trace.goes_on(pc)
        thread, space = state.thread, state.space
        with unless_killed(thread.tid):
            self._deferral.restore_mask(state)
            setattr(registers, self._isa.registers.pc, pc)
            self._backend.set_own(thread.tid, registers, state.words, state.program_base)
            actions = self._syscalls.actions[thread.process]
            # Before any thread is out: none must enter a handler in the cache from there.
            self.give_handlers_back(thread.process, thread.tid, space, actions)
            actions.given_back()
        state.mode = Mode.PARTED
        last = not self._in_use(space)
        if last:
            self.take_down(thread.process, thread.tid, space)
        self._tracer.let_run(thread)
        self._parted.append(state)
        self._let_wait_no_longer()
        if last:
            self._close_parted(space)
        elif not self._tracer.leaving:  # it alone is let go
            self._parted.remove(state)
            self._close(state)
            self._tracer.left(thread)

    def _close_parted(self, space: CodeCache) -> None:
        """Add up what threads have counted that have been let go."""
        parted = [state for state in self._parted if state.space is space]
        self._parted = [state for state in self._parted if state.space is not space]
        for state in parted:
            self._close(state)
        for state in parted:
            self._tracer.left(state.thread)

    def done_with(self, process: TracedProcess, space: CodeCache) -> None:
        """A thread of a process is gone: if it was the last in livepro's memory, and others have been let
        go, that is unmapped through one of those.

        Not while one is on its way out: a thread that was let go may be in an exec by now, which waits for
        the one on its way out, and to seize it would wait for the exec (de_thread in fs/exec.c,
        ptrace_attach in kernel/ptrace.c).
        """
        if not self._syscalls.changing:
            self._let_wait_no_longer()  # it may have been the one
        tracer = self._tracer
        if not tracer.leaving or self._in_use(space):
            return
        traced = any(thread.process is process for thread in tracer.threads.values())
        if traced or tracer.to_be_taken(process):
            return
        if any(state.space is space for state in self._parted):
            with contextlib.suppress(ProcessLookupError):
                for tid in proc.threads(process.pid):
                    with contextlib.suppress(OSError), caught(tid):
                        registers = ptrace.get_registers(tid, self._isa.registers.structure)
                        if self._isa.restart_call(registers):
                            ptrace.set_registers(tid, registers)
                        self.take_down(process, tid, space)
                        break
            self._close_parted(space)

    def _let_wait_no_longer(self) -> None:
        """Let those go that had to wait for another thread, if it was the one."""
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            if in_hand(thread.tid):
                self.part(thread)
        held, self._held = self._held, []
        for state, registers, pc in held:
            if in_hand(state.thread.tid):
                self.park(state, registers, pc)

    def give_handlers_back(
        self, process: TracedProcess, tid: int, space: CodeCache, actions: SignalActions
    ) -> None:
        """Tell the kernel, through a stopped thread that is out of the cache, of the handlers
        that the program itself has set."""
        if actions.told or actions.trap is not None:
            at = space.areas.area_address(0) + layout.SCRATCH_ACTION
            acting = self._numbers["rt_sigaction"]
            give_back(self._calls.by(process, tid), acting, tid, at, space.handlers.handlers, actions)

    def _in_use(self, space: CodeCache) -> bool:
        return self._table.in_use(space, self._tracer.newborn)

    def take_down(self, process: TracedProcess, tid: int, space: CodeCache) -> None:
        """Unmap livepro's memory, through a stopped thread that is out of it. Nothing is done where that
        has been done, or the process has begun another image."""
        areas = space.areas
        if not areas.data.mapped_in(tid):
            return
        files = [areas.data, *areas.windows, *(cache_file.file for cache_file in space.memory.files)]
        calls = self._calls.by(process, tid)
        with unless_killed(tid):
            # What tells that it has been done goes last.
            for file in reversed(files):
                calls.call(self._numbers["munmap"], file.base, file.size)


def before_call(place: Place, pc: int) -> bool:
    """Whether a cache address is in what leads to a system call, and is none of the counter's
    or the comparison's before or behind that."""
    block, index = place.block, place.index
    behind = next((at for at, i in block.details.behind_syscall.items() if i == index + 1), None)
    # (A comparison out of line has no places of instructions at all.)
    return behind is not None and not block.source.leaves and block.marks[index] <= pc - block.start < behind
