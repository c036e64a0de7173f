"""Translated threads brought to rest, so that their counts can be taken at one moment.

Threads that run are interrupted and stay stopped. Whatever stop one makes meanwhile, it
stands still there, and is dealt with when all go on: nothing that a stop brings about
comes in between. One that waits inside a system call is left there, for some calls fail
with EINTR when they are interrupted: its counts do not change as long as it sleeps, and
whether it slept on is told by its context switches. Should it wake meanwhile, its counts
are those that it had when it was found asleep.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import numpy.typing as npt

from livepro.engines.base import EngineOptions
from livepro.engines.recording import ThreadTally
from livepro.engines.translate import layout
from livepro.engines.translate.cache import Block
from livepro.engines.translate.emitted import Countdown
from livepro.engines.translate.leaving import Leaving
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.thread import NOWHERE, Mode, TranslatedThread
from livepro.engines.window import BETWEEN, Counts, Position, Vectors
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace
from livepro.linux.wait import is_stop, stop_event
from livepro.model import Flow
from livepro.tracee import TracedThread
from livepro.tracee.stops import WAIT_FLAGS, trap_pending, unless_killed

_REP_ITERATIONS = layout.REP_ITERATIONS // 8

_SPINS = 20  # polls before sleeping between them
_POLL = 0.0001  # seconds between two polls
_LOOK = 20  # polls between two looks at whether those waited for sleep


class Halting(Leaving):
    """The part of the translate engine that control asks where threads are."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._resting: dict[int, int] = {}
        self._asleep: dict[int, proc.Sleep] = {}
        self._asleep_counts: dict[int, npt.NDArray[np.int64]] = {}
        self._expected: set[int] = set()
        self._halts = 0

    def _state_of(self, tally: ThreadTally) -> TranslatedThread | None:
        state = self._states.get(tally.thread.tid)
        return state if state is not None and state.tally is tally else None

    # -- see `livepro.engines.control.Controlled`

    def raw_counts(self, tally: ThreadTally) -> Counts:
        state = self._state_of(tally)
        if state is None:
            return tally.raw_counts()
        entries = self._counted_by(state)
        for slot, times in tally.entries.items():
            entries[slot] += times
        iterations = tally.rep_iterations + int(state.words[_REP_ITERATIONS])
        return Counts.dense(entries, tally.partial, iterations)

    def _counted_by(self, state: TranslatedThread) -> npt.NDArray[np.int64]:
        """Executions of each block (int64, by slot); of a thread found asleep, those of that time."""
        kept = self._asleep_counts.get(state.thread.tid)
        if kept is None:
            return state.counters.all()
        return np.pad(kept, (0, len(state.space.lengths()) - len(kept)))

    def vectors(self, tally: ThreadTally) -> Vectors | None:
        state = self._state_of(tally)
        return None if state is None else state.clock

    def position(self, tally: ThreadTally) -> Position:
        state = self._state_of(tally)
        return BETWEEN if state is None else self._no_less(state, self._found_at(state))

    def _found_at(self, state: TranslatedThread) -> Position:
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

    def _no_less(self, state: TranslatedThread, position: Position) -> Position:
        """A position, but what was once said to have been executed has been: a system call that
        is begun again after it was interrupted was executed when it was begun first."""
        row, executed = position.row, position.executed
        if position.length:
            key = row, self._execution(state, row, charged=position.charged > 0)
            if state.furthest[:2] == key and state.furthest[2] > executed:
                return position._replace(executed=state.furthest[2])
            state.furthest = (*key, executed)
        return position

    @staticmethod
    def _execution(state: TranslatedThread, slot: int, *, charged: bool) -> int:
        """The number of the execution of a block that a thread is in."""
        return state.counters.of(slot) + (not charged)

    def _uncount(self, state: TranslatedThread, block: Block, count: int, *, counted: bool) -> None:
        slot, execution, furthest = state.furthest
        if (slot, execution) == (block.slot, self._execution(state, block.slot, charged=counted)):
            count = max(count, furthest)
        state.furthest = NOWHERE
        super()._uncount(state, block, count, counted=counted)

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
        if stop is not None and self._at_breakpoint(state.thread):  # it may be about to say so
            if stop.kind in ("dropped", "region"):
                return BETWEEN
            if stop.kind != "budget" and stop.block is block:
                index = min(index, stop.index)
        counted, charged = block.charge(pc)
        position = block.position(index, counted=counted)
        if self._countdown and counted and not charged:
            position = position._replace(owed=position.length)
        if place.at_rep:
            source = place.block.source
            encoding = source.code[source.offsets[place.index] : source.offsets[place.index + 1]]
            left = self.isa.rep_count(encoding, state.thread.registers())
            position = position._replace(iterations=left)
        return position

    def _at_breakpoint(self, thread: TracedThread) -> bool:
        """Whether a thread that stands still has run into a breakpoint."""
        with suppress(OSError):  # it sleeps
            info = ptrace.signal_info(thread.tid)
            if info is not None and info.signo == signal.SIGTRAP and info.code == self.isa.breakpoint.si_code:
                return True
        with suppress(OSError):
            return trap_pending(thread.tid)
        return False

    def block_parts(self, tally: ThreadTally, row: int) -> tuple[bytes, bytes]:
        state = self._state_of(tally)
        if state is None:
            return super().block_parts(tally, row)
        _, code, sizes = state.space.parts(row)
        return code, sizes

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
        self._halts += 1
        try:
            self._bring_to_rest()
            yield
        finally:
            if self._countdown:
                self._catch_up()
            self._halts -= 1
            if not self._halts:
                self._behind.extend(self._resting.items())
                self._resting, self._asleep, self._asleep_counts = {}, {}, {}

    def _bring_to_rest(self) -> None:
        self._hold_behind()
        # Answering a birth or an end meanwhile may set threads going.
        while missing := [state for tid, state in self._states.items() if self._moves(tid, state)]:
            for state in missing:
                self._ask_to_rest(state.thread.tid)
            while self._outstanding():
                got = self._poll()
                if got is not None:
                    self.stops += 1
                    self._came_to_rest(*got)
        for tid in self._resting.keys() & self._states.keys():
            with unless_killed(tid):
                self._leave_counter(self._states[tid])

    def _leave_counter(self, state: TranslatedThread) -> None:
        """Let a thread that stands still have written the counter it is about to write."""
        if self._countdown is not Countdown.ALLOWANCES:
            return
        pc, space = self._pc(state.thread.tid), state.space
        if not _counts(space, pc) or (pc not in space.refill and space.stop_at(pc - self._pc_advance)):
            return  # (or that was before)
        registers, name = state.thread.registers(), self.isa.registers.pc
        while _counts(space, pc):
            if not self._backend.catch_up(registers, state.words, state.area_address, state.thread.read):
                raise RuntimeError(f"no part of a counter at {pc:#x}")
            pc = getattr(registers, name)
        state.thread.set_registers(registers)

    def _ask_to_rest(self, tid: int) -> None:
        sleep = self._found_asleep(tid)
        if sleep is None and ptrace.raw(ptrace.PTRACE_INTERRUPT, tid, None, None) == -1:
            sleep = proc.Sleep(0, -1)  # it is gone
        if sleep is None:
            self._expected.add(tid)
        else:
            self._asleep[tid] = sleep

    def _found_asleep(self, tid: int) -> proc.Sleep | None:
        """How a thread sleeps, if it does; what it has counted is then kept."""
        self._forget_sleep(tid)
        sleep, state = proc.sleep(tid), self._states.get(tid)
        if sleep is not None and state is not None:
            counted = state.counters.all()
            if not proc.slept_on(tid, sleep):  # it may have counted meanwhile
                return None
            self._asleep_counts[tid] = counted
        return sleep

    def _forget_sleep(self, tid: int) -> None:
        self._asleep.pop(tid, None)
        self._asleep_counts.pop(tid, None)

    def _hold_behind(self) -> None:
        """Threads that have stopped and wait for an answer stand still."""
        waiting = list(self._behind)
        self._behind.clear()
        for tid, status in waiting:
            if tid in self._states:
                self._resting[tid] = status
            else:
                self._behind.append((tid, status))

    def _poll(self) -> tuple[int, int] | None:
        """The next status, None when those that are waited for have turned out to sleep: one that
        another thread must go on for, as an exec's caller, does not make the stop it was asked for."""
        polls = 0
        while True:
            try:
                tid, status = os.waitpid(-1, WAIT_FLAGS | os.WNOHANG)
            except ChildProcessError:
                self._expected.clear()
                return None
            if tid:
                return tid, status
            polls += 1
            if polls < _SPINS:
                os.sched_yield()
                continue
            time.sleep(_POLL)
            if polls % _LOOK == 0:
                for late in self._outstanding():
                    sleep = self._found_asleep(late)
                    if sleep is not None:
                        self._asleep[late] = sleep
                        return None

    def _came_to_rest(self, tid: int, status: int) -> None:
        """Something has happened while threads are brought to rest."""
        self._resting.pop(tid, None)  # killed where it stood
        self._forget_sleep(tid)
        event = stop_event(status) if is_stop(status) else -1
        if tid == self.tracer.bell.pid:
            self._behind.append((tid, status))
        elif tid in self._states and event in (0, ptrace.PTRACE_EVENT_STOP) and not self.leaving:
            self._resting[tid] = status
            if event and tid in self._expected:
                self._expected.discard(tid)
                with unless_killed(tid):
                    self.woken(self.tracer.threads[tid])
        else:
            self.tracer.dispatch(tid, status)

    def interrupted(self, thread: TracedThread) -> None:
        if thread.tid in self._expected:  # it made another stop first
            self._expected.discard(thread.tid)
            self.woken(thread)
        super().interrupted(thread)

    def _outstanding(self) -> list[int]:
        """The threads that have yet to stop."""
        self._expected &= self._states.keys()
        return [tid for tid in self._expected if self._moves(tid, self._states[tid])]

    def _moves(self, tid: int, state: TranslatedThread) -> bool:
        """Whether a thread may be running."""
        if self.leaving or tid in self._resting or state.asking is not None:
            return False
        sleep = self._asleep.get(tid)
        if sleep is not None and not proc.slept_on(tid, sleep):
            self._forget_sleep(tid)
            sleep = None
        return sleep is None

    def _catch_up(self) -> None:
        """A thread that woke while its budget was being set may have undone that."""
        written = dict(self._asleep)
        while woken := [tid for tid, sleep in written.items() if not proc.slept_on(tid, sleep)]:
            for tid in woken:
                del written[tid]
                self._forget_sleep(tid)
            self._bring_to_rest()
            for tid in woken:
                state = self._states.get(tid)
                if state is not None:
                    self._resynchronise(state)
                if tid in self._asleep:
                    written[tid] = self._asleep[tid]

    def _resynchronise(self, state: TranslatedThread) -> None:
        """A thread stands still whose budget was set while it ran."""
        if state.clock is not None:
            state.clock.resynchronise()


def _counts(space: CodeSpace, pc: int) -> bool:
    """Whether a thread at `pc` is about to write a counter: in a block's copy, on its way to where it
    is given an allowance, or there; not at a stop."""
    if pc in space.refill:
        return True
    place = space.locate(pc)
    return place is not None and place.block.counting(pc) and space.stop_at(pc) is None
