"""When a full code cache is flushed, and when the room of what was flushed is used again.

A thread that comes to new code when there is no room left has all fragments dropped
(`generations`); it goes on in a new one at once, others when they come to the end of the
block they are in. Then the counters of what was dropped are added up and its memory is used
again. Should there be no room before that, code is executed step by step at its own place, and counted,
until there is.
"""

from __future__ import annotations

import time

from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.flush.generations import PinnedReturn
from livepro.engines.translate.persist.keeping import PersistedCache, keep
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.suspending import Suspender
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.window import BETWEEN
from livepro.isa.base import Isa
from livepro.linux import proc
from livepro.tracee import Tracer

_BETWEEN_LOOKS = 0.001  # seconds between two looks at whether threads have left


class FlushPolicy:
    """Flushes code caches when there is too much in them."""

    def __init__(
        self,
        isa: Isa,
        tracer: Tracer,
        table: ThreadTable,
        pc: ProgramCounter,
        suspender: Suspender,
        persisted: PersistedCache | None,
    ) -> None:
        self._describe = isa.describe
        self._tracer = tracer
        self._table = table
        self._pc = pc
        self._suspender = suspender
        self._persisted = persisted
        self._looking = False

    def flush(self, state: TranslatedThread) -> bool:
        """Drop all fragments. The thread is at a boundary between blocks. False if it cannot be done now."""
        space = state.space
        if self._tracer.leaving or (space.memory.flushed is not None and not self.reclaim(state)):
            return False
        if not space.flusher.flushes and self._persisted is not None:
            space.registry.executed(state.counters.ran())
            keep(space, self._persisted, self._describe)  # it will be too late afterwards
        space.flusher.flush()
        space.flusher.looked = 0.0
        self.reclaim(state)
        return True

    def reclaim(self, state: TranslatedThread) -> bool:
        """Use the room of dropped fragments again. False if a thread may be in them, or it has just been
        looked."""
        space, now = state.space, time.monotonic()
        if self._tracer.leaving or self._looking or now < space.flusher.looked + _BETWEEN_LOOKS:
            return False
        asking = state.asking
        if asking is None:
            state.asking = BETWEEN
        self._looking = True
        try:
            with self._suspender.halted():
                pinned = self._left(state)
                if pinned is not None:
                    self._fold(space, pinned)
        finally:
            self._looking = False
            state.asking = asking
        space.flusher.looked = time.monotonic()
        return pinned is not None

    def _left(self, state: TranslatedThread) -> dict[int, PinnedReturn] | None:
        """What dropped fragments must keep for threads that sleep there, by tid; None if others may be there.
        Threads are halted."""
        space, table = state.space, self._table
        if any(
            table.spaces.get(process) is space or table.inherited.get(process) is space
            for process in self._tracer.newborn
        ):
            return None
        sleeping: dict[int, PinnedReturn] = {}
        for tid, other in table.states.items():
            if other.space is not space or other is state:
                continue
            sleep = table.asleep.get(tid)
            try:
                pc = self._pc.of(tid) if sleep is None else sleep.pc
            except OSError:
                return None  # it is about to end, and must be found then
            pc = other.going_to(pc)
            pinned = self._kept_for(other, pc, sleep)
            if pinned is not None:
                sleeping[tid] = pinned
            elif space.memory.flushed is not None and space.memory.flushed.holds(pc):
                return None
        return sleeping

    def _kept_for(self, state: TranslatedThread, pc: int, sleep: proc.Sleep | None) -> PinnedReturn | None:
        """What must be kept for a thread at cache address `pc`, if it waits there."""
        space, tid, flushed = state.space, state.thread.tid, state.space.memory.flushed
        known = space.memory.pinned.get(tid)
        if known is not None and known.locate(pc) is not None:
            return known
        if sleep is None or state.mode is not Mode.RUNNING or flushed is None:
            return None
        if not flushed.holds(pc):
            return None
        pinned = space.flusher.wait_behind(pc, self._pc.advance)
        if pinned is None or not proc.slept_on(tid, sleep):
            return None  # it may have gone on before there was a stop
        return pinned

    def _fold(self, space: CodeCache, pinned: dict[int, PinnedReturn]) -> None:
        """Add up what threads have counted in dropped fragments, and give these up."""
        flushed = space.memory.flushed
        assert flushed is not None
        with space.registry.moving():
            for state in self._table.states.values():
                if state.space is space:
                    state.budget.give(state.counters.fold(flushed.cells))
            space.flusher.reclaim(pinned)
