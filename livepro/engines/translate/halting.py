"""Translated threads brought to rest, so that their counts can be taken at one moment.

Threads that run are interrupted and stay stopped. One that waits inside a system
call is left there, for some calls fail with EINTR when they are interrupted: its
counts do not change as long as it sleeps, and whether it slept on is told by
its context switches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from livepro.engines.base import EngineOptions
from livepro.engines.recording import ThreadTally
from livepro.engines.translate import layout
from livepro.engines.translate.leaving import Leaving
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.window import BETWEEN, Counts, Position, Vectors
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace
from livepro.linux.wait import TRAP_STATUS, is_stop, stop_event
from livepro.model import Flow
from livepro.tracee.stops import WAIT_FLAGS

_FIRST = layout.COUNTERS // 8
_REP_ITERATIONS = layout.REP_ITERATIONS // 8


class Halting(Leaving):
    """The part of the translate engine that control asks where threads are."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._resting: dict[int, int] = {}
        self._asleep: dict[int, proc.Sleep] = {}
        self._expected: set[int] = set()

    def _state_of(self, tally: ThreadTally) -> TranslatedThread | None:
        state = self._states.get(tally.thread.tid)
        return state if state is not None and state.tally is tally else None

    # -- see `livepro.engines.control.Controlled`

    def raw_counts(self, tally: ThreadTally) -> Counts:
        state = self._state_of(tally)
        if state is None:
            return tally.raw_counts()
        entries = state.words[_FIRST : _FIRST + len(state.space.starts)].astype(np.int64)
        for slot, times in tally.entries.items():
            entries[slot] += times
        iterations = tally.rep_iterations + int(state.words[_REP_ITERATIONS])
        return Counts.dense(entries, tally.partial, iterations)

    def vectors(self, tally: ThreadTally) -> Vectors | None:
        state = self._state_of(tally)
        return None if state is None else state.clock

    def position(self, tally: ThreadTally) -> Position:
        state = self._state_of(tally)
        if state is None:
            return BETWEEN
        if state.asking is not None:
            return state.asking
        sleep = self._asleep.get(state.thread.tid)
        if sleep is not None:
            return self._position_at(state, sleep.pc)
        if state.thread.tid not in self._resting:
            return BETWEEN
        try:
            return self._position_at(state, self._pc(state.thread.tid))
        except OSError:
            return BETWEEN  # killed meanwhile

    def _position_at(self, state: TranslatedThread, pc: int) -> Position:
        if state.mode is Mode.DELIVERING:
            return BETWEEN  # what it left was taken off when it left
        if state.mode is Mode.NATIVE:
            stop = state.native
            if stop is None or stop.block is None:
                return BETWEEN
            return stop.block.position(stop.index + (pc != state.at), counted=stop.counted)
        place = state.space.locate(pc)
        if place is None:
            return BETWEEN  # in a lookup, or at an exit
        block, index = place.block, place.index
        stop = state.space.stop_at(pc - self._pc_advance)
        if stop is not None and stop.block is block:
            index = min(index, stop.index) if stop.kind == "native" else index  # it may be about to say so
        within = pc - block.start
        position = block.position(index, counted=within >= block.details.tallied)
        if self._budget_cells and block.details.tallied <= within < max(
            block.details.tallied + 1, block.details.charged
        ):
            position = position._replace(owed=position.length)
        if place.at_rep:
            source = place.block.source
            encoding = source.code[source.offsets[place.index] : source.offsets[place.index + 1]]
            left = self.isa.rep_count(encoding, state.thread.registers())
            position = position._replace(iterations=left)
        return position

    def block_parts(self, tally: ThreadTally, row: int) -> tuple[bytes, bytes]:
        state = self._state_of(tally)
        if state is None:
            return super().block_parts(tally, row)
        source = state.space.block(row).source
        return source.code, source.steps()

    def _end_native(self, state: TranslatedThread) -> None:
        stop, before = state.native, state.before
        if stop is not None and stop.block is not None:
            command = self.inprocess.command(state.thread, before)
            # (What looks like one may be any instruction with the call's number in its register.)
            if command is not None and stop.block.source.facts[stop.index].flow is Flow.SYSCALL:
                state.asking = stop.block.position(stop.index + 1, counted=stop.counted)
                self.inprocess.answer(state.thread, state.tally, before, command)
                state.asking = None
        super()._end_native(state)

    @contextmanager
    def halted(self) -> Iterator[None]:
        self._bring_to_rest()
        try:
            yield
        finally:
            if self._budget_cells:
                self._catch_up()
            resting, self._resting = self._resting, {}
            self._asleep = {}
            for tid, status in resting.items():
                self.tracer.dispatch(tid, status)

    def _bring_to_rest(self) -> None:
        self._answer_behind()
        # Answering stops meanwhile may bring commands that halt for themselves: all share what is known.
        while missing := [state for tid, state in self._states.items() if self._moves(tid, state)]:
            for state in missing:
                tid = state.thread.tid
                sleep = proc.sleep(tid)
                if sleep is not None:
                    self._asleep[tid] = sleep
                elif ptrace.raw(ptrace.PTRACE_INTERRUPT, tid, None, None) != -1:
                    self._expected.add(tid)
            while self._outstanding():
                tid, status = os.waitpid(-1, WAIT_FLAGS)
                self.stops += 1
                state_ = self._states.get(tid)
                event = stop_event(status) if is_stop(status) else 0
                if event == ptrace.PTRACE_EVENT_STOP and tid in self._expected and not self.leaving:
                    self._expected.discard(tid)
                    self._resting[tid] = status
                    with suppress(ProcessLookupError):
                        self.woken(self.tracer.threads[tid])
                elif status == TRAP_STATUS and state_ is not None and state_.mode is Mode.RUNNING:
                    with suppress(ProcessLookupError):
                        self._stopped_in_cache(state_)
                else:
                    self.tracer.dispatch(tid, status)

    def _outstanding(self) -> bool:
        """Whether there are threads that have yet to make the stop asked for. One that has given
        a command itself stands still: it makes that stop when it goes on, and nobody waits for it."""
        self._expected = {
            tid for tid in self._expected if (s := self._states.get(tid)) is not None and s.asking is None
        }
        return bool(self._expected)

    def _moves(self, tid: int, state: TranslatedThread) -> bool:
        """Whether a thread may be running."""
        if self.leaving or tid in self._resting or state.asking is not None:
            return False
        sleep = self._asleep.get(tid)
        if sleep is not None and not proc.slept_on(tid, sleep):
            del self._asleep[tid]
            sleep = None
        return sleep is None

    def _catch_up(self) -> None:
        """A thread that woke while its interval was being set may have undone that."""
        woken = [tid for tid, sleep in self._asleep.items() if not proc.slept_on(tid, sleep)]
        if woken:
            self._bring_to_rest()
        for tid in woken:
            state = self._states.get(tid)
            if state is not None:
                self._resynchronise(state)

    def _resynchronise(self, state: TranslatedThread) -> None:
        """A thread stands still whose budget was set while it ran."""
        if state.clock is not None:
            state.clock.resynchronise()
