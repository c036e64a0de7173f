"""Which threads run in code caches, which stand still, and where each one's program counter is."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import ThreadTally
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.translator.backend import Backend
from livepro.isa.access import ALL_64
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace
from livepro.tracee import TracedProcess
from livepro.tracee.stops import failed

_LOOKED_AT = 16  # bytes: more than the longest instruction has


class ThreadTable:
    """The threads that run in code caches (`states`, by tid), and the code caches of processes (`spaces`).

    `inherited` are those of forked children no thread of which has been seen yet. `resting` are threads
    that have stopped and stand still while all are halted, with the status of that stop; `asleep` are those
    that were found asleep in a system call instead.
    """

    def __init__(self) -> None:
        self.states: dict[int, TranslatedThread] = {}
        self.spaces: dict[TracedProcess, CodeCache] = {}
        self.inherited: dict[TracedProcess, CodeCache] = {}
        self.resting: dict[int, int] = {}
        self.asleep: dict[int, proc.Sleep] = {}
        self._asleep_counts: dict[int, npt.NDArray[np.int64]] = {}

    def of(self, tally: ThreadTally) -> TranslatedThread | None:
        """The thread that counts for a tally, None if it has ended or has not begun."""
        state = self.states.get(tally.thread.tid)
        return state if state is not None and state.tally is tally else None

    def wanted(self) -> list[TranslatedThread]:
        """The threads of processes that are measured."""
        return [state for state in self.states.values() if state.thread.process.wanted]

    def in_use(self, space: CodeCache, newborn: Iterable[TracedProcess]) -> bool:
        """Whether a thread may yet be in a code cache; `newborn` processes have not been seen running."""
        if any(s.space is space and s.mode is not Mode.PARTED for s in self.states.values()):
            return True
        return any(
            self.spaces.get(process) is space
            or (process.shares_memory and self.inherited.get(process) is space)
            for process in newborn
        )

    def give_up(self, process: TracedProcess) -> tuple[CodeCache | None, bool]:
        """A process has ended: the code cache that it has had, if any, and whether nobody else has that, or
        will have a copy of it: a child may be seen after its parent has ended."""
        space = self.spaces.pop(process, None)
        self.inherited.pop(process, None)
        return space, all(space is not other for other in (*self.spaces.values(), *self.inherited.values()))

    def executions(self, space: CodeCache, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How often living threads have executed the fragments that count in `cells` (int64), about."""
        total = np.zeros(len(cells), np.int64)
        for state in list(self.states.values()):
            if state.space is space:
                total += state.counters.counted(cells)
        return total

    # -- threads that sleep

    def find_asleep(self, tid: int) -> proc.Sleep | None:
        """How a thread sleeps, if it does; what it has counted is then kept."""
        self.forget_sleep(tid)
        sleep, state = proc.sleep(tid), self.states.get(tid)
        if sleep is not None and state is not None:
            counted = state.counters.all()
            if not proc.slept_on(tid, sleep):  # it may have counted meanwhile
                return None
            self._asleep_counts[tid] = counted
        return sleep

    def forget_sleep(self, tid: int) -> None:
        """A thread does not sleep any more."""
        self.asleep.pop(tid, None)
        self._asleep_counts.pop(tid, None)

    def counts_of(self, state: TranslatedThread) -> npt.NDArray[np.int64]:
        """Executions of each block (int64, by slot) by a thread; by one found asleep, those of that time."""
        kept = self._asleep_counts.get(state.thread.tid)
        if kept is None:
            return state.counters.all()
        return np.pad(kept, (0, len(state.space.registry.lengths()) - len(kept)))

    def all_go_on(self) -> None:
        """No thread stands still any more."""
        self.resting, self.asleep, self._asleep_counts = {}, {}, {}


class ProgramCounter:
    """Reads and writes the program counters of stopped threads. `advance` is how far one is behind a
    breakpoint that the thread has run into (bytes)."""

    def __init__(self, isa: Isa, backend: Backend) -> None:
        self._backend = backend
        layout = isa.registers
        arguments = layout.pc_user_offset, layout.structure, layout.pc
        self._read = ptrace.program_counter_reader(*arguments)
        self._write = ptrace.program_counter_writer(*arguments)
        self.advance = isa.breakpoint.pc_advance

    def of(self, tid: int) -> int:
        """Where a stopped thread is. Raises OSError when that cannot be told."""
        pc = self._read(tid)
        if pc == -1:
            failed(tid)  # else it is indeed there
        return pc & ALL_64

    def lead(self, tid: int, address: int) -> bool:
        """Have a stopped thread run on from an address. False if it has been killed; raises OSError if it
        cannot be led there."""
        return self._write(tid, address) != -1 or not failed(tid)

    def lead_on(self, state: TranslatedThread, address: int) -> bool:
        """The same within a code cache, for a thread that has its own registers but for one that it may be
        lent."""
        if state.lends:
            code = state.thread.read(address, _LOOKED_AT)
            self._backend.lead(state.thread.tid, state.words, code)
        return self.lead(state.thread.tid, address)
