"""Room made in full code caches: everything is dropped, and no count with it.

A thread that comes to new code when there is no room left has all copies dropped
(`generations`); it goes on in a new one at once, others when they come to the end of the
block they are in. Then the counters of what was dropped are added up and its memory is used
again. Should there be no room before that, code is executed step by step at its own place, and counted,
until there is.
"""

from __future__ import annotations

import time

from livepro.engines.base import EngineOptions
from livepro.engines.translate.generations import Waited
from livepro.engines.translate.halting import Halting
from livepro.engines.translate.keeping import keep
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.window import BETWEEN
from livepro.isa.base import Isa
from livepro.linux import proc

_PATIENCE = 0.001  # seconds between two looks at whether threads have left


class Evicting(Halting):
    """The part of the translate engine that drops copies when there are too many."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._looking = False

    def _make_room(self, state: TranslatedThread) -> bool:
        """Drop all copies. The thread is at a boundary between blocks. False if it cannot be done now."""
        space = state.space
        if self.leaving or (space.dropped is not None and not self._give_back(state)):
            return False
        if not space.renewals and self._shelf is not None:
            space.executed(state.counters.all())
            keep(space, self._shelf, self.isa.describe)  # it will be too late afterwards
        space.renew()
        space.looked = 0.0
        self._give_back(state)
        return True

    def _give_back(self, state: TranslatedThread) -> bool:
        """Use the room of dropped copies again, if nobody is in them any more."""
        space, now = state.space, time.monotonic()
        if self.leaving or self._looking or now < space.looked + _PATIENCE:
            return False
        asking = state.asking
        if asking is None:
            state.asking = BETWEEN
        self._looking = True
        try:
            with self.halted():
                waited = self._left(state)
                if waited is not None:
                    self._fold(space, waited)
        finally:
            self._looking = False
            state.asking = asking
        space.looked = time.monotonic()
        return waited is not None

    def _left(self, state: TranslatedThread) -> dict[int, Waited] | None:
        """What dropped copies must keep for threads that sleep there, by tid; None if others may be there.
        Threads are halted."""
        space = state.space
        if any(
            self._spaces.get(process) is space or self._inherited.get(process) is space
            for process in self.tracer.newborn
        ):
            return None
        sleeping: dict[int, Waited] = {}
        for tid, other in self._states.items():
            if other.space is not space or other is state:
                continue
            sleep = self._asleep.get(tid)
            try:
                pc = self._pc(tid) if sleep is None else sleep.pc
            except OSError:
                return None  # it is about to end, and must be found then
            waited = self._kept_for(other, pc, sleep)
            if waited is not None:
                sleeping[tid] = waited
            elif space.dropped is not None and space.dropped.holds(pc):
                return None
        return sleeping

    def _kept_for(self, state: TranslatedThread, pc: int, sleep: proc.Sleep | None) -> Waited | None:
        """What must be kept for a thread at cache address `pc`, if it waits there."""
        space, tid = state.space, state.thread.tid
        known = space.waited.get(tid)
        if known is not None and known.locate(pc) is not None:
            return known
        if sleep is None or state.mode is not Mode.RUNNING or space.dropped is None:
            return None
        if not space.dropped.holds(pc):
            return None
        waited = space.wait_behind(pc, self._pc_advance)
        if waited is None or not proc.slept_on(tid, sleep):
            return None  # it may have gone on before there was a stop
        return waited

    def _fold(self, space: CodeSpace, waited: dict[int, Waited]) -> None:
        assert space.dropped is not None
        with space.moving():
            for state in self._states.values():
                if state.space is space:
                    state.budget.give(state.counters.fold(space.dropped.cells))
            space.give_back(waited)
