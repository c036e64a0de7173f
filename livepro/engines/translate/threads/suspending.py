"""All threads suspended for a moment, so that their counts can be taken at one (synch-all).

Threads that run are interrupted and stay stopped. Whatever stop one makes meanwhile, it
stands still there, and is dealt with when all go on: nothing that a stop brings about
comes in between. One that waits inside a system call is left there, for some calls fail
with EINTR when they are interrupted: its counts do not change as long as it sleeps, and
whether it slept on is told by its context switches. Should it wake meanwhile, its counts
are those that it had when it was found asleep.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.thread import TranslatedThread
from livepro.engines.translate.threads.stops import StopQueue
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.engines.translate.translator.emitted import Countdown
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace
from livepro.linux.wait import is_stop, stop_event
from livepro.tracee import TracedThread, Tracer
from livepro.tracee.stops import WAIT_FLAGS, unless_killed

# Measured with four threads halted at each of 300 intervals: a tenth and ten times of each are within 5 %.
_SPINS = 20  # polls before sleeping between them
_POLL = 0.0001  # seconds between two polls
_LOOK = 20  # polls between two looks at whether those waited for sleep


class Suspender:
    """Brings all threads to rest, and lets them go on.

    `woken` sees to a thread that was told to stop and has stopped; `resynchronise` sets a thread's countdown
    again that may have run while it was set. `halts` says how often threads are halted at the moment.
    """

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        table: ThreadTable,
        pc: ProgramCounter,
        stops: StopQueue,
        countdown: Countdown,
        woken: Callable[[TracedThread], None],
        resynchronise: Callable[[TranslatedThread], None],
    ) -> None:
        self.halts = 0
        self._pc_name = isa.registers.pc
        self._backend = backend
        self._tracer = tracer
        self._table = table
        self._pc = pc
        self._stops = stops
        self._countdown = countdown
        self._woken = woken
        self._resynchronise = resynchronise
        self._expected: set[int] = set()

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Meanwhile no thread's counts change."""
        self.halts += 1
        try:
            self._bring_to_rest()
            yield
        finally:
            if self._countdown:
                self._catch_up()
            self.halts -= 1
            if not self.halts:
                self._stops.behind.extend(self._table.resting.items())
                self._table.all_go_on()

    def interrupted(self, thread: TracedThread) -> None:
        """A thread makes the stop that it was told to make, and no other before it has been dealt with."""
        if thread.tid in self._expected:  # it made another stop first
            self._expected.discard(thread.tid)
            self._woken(thread)

    def leave_counter(self, state: TranslatedThread) -> None:
        """Let a thread that stands still have written the counter it is about to write."""
        if self._countdown is not Countdown.ALLOWANCES:
            return
        pc, space = self._pc.of(state.thread.tid), state.space
        if not _counts(space, pc) or (
            pc not in space.memory.refill and space.memory.stop_at(pc - self._pc.advance)
        ):
            return  # (or that was before)
        registers, name = state.thread.registers(), self._pc_name
        while _counts(space, pc):
            if not self._backend.roll_forward(registers, state.words, state.area_address, state.thread.read):
                raise RuntimeError(f"no part of a counter at {pc:#x}")
            pc = getattr(registers, name)
        state.thread.set_registers(registers)

    def _bring_to_rest(self) -> None:
        self._hold_behind()
        table = self._table
        # Answering a birth or an end meanwhile may set threads going.
        while missing := [state for tid, state in table.states.items() if self._moves(tid, state)]:
            for state in missing:
                self._ask_to_rest(state.thread.tid)
            while self._outstanding():
                got = self._poll()
                if got is not None:
                    self._stops.count += 1
                    self._came_to_rest(*got)
        for tid in table.resting.keys() & table.states.keys():
            with unless_killed(tid):
                self.leave_counter(table.states[tid])

    def _ask_to_rest(self, tid: int) -> None:
        sleep = self._table.find_asleep(tid)
        if sleep is None and ptrace.raw(ptrace.PTRACE_INTERRUPT, tid, None, None) == -1:
            sleep = proc.Sleep(0, -1)  # it is gone
        if sleep is None:
            self._expected.add(tid)
        else:
            self._table.asleep[tid] = sleep

    def _hold_behind(self) -> None:
        """Threads that have stopped and wait for an answer stand still."""
        behind = self._stops.behind
        waiting = list(behind)
        behind.clear()
        for tid, status in waiting:
            if tid in self._table.states:
                self._table.resting[tid] = status
            else:
                behind.append((tid, status))

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
                    sleep = self._table.find_asleep(late)
                    if sleep is not None:
                        self._table.asleep[late] = sleep
                        return None

    def _came_to_rest(self, tid: int, status: int) -> None:
        """Something has happened while threads are brought to rest."""
        table, tracer = self._table, self._tracer
        table.resting.pop(tid, None)  # killed where it stood
        table.forget_sleep(tid)
        event = stop_event(status) if is_stop(status) else -1
        if tid == tracer.waker.pid:
            self._stops.behind.append((tid, status))
        elif tid in table.states and event in (0, ptrace.PTRACE_EVENT_STOP) and not tracer.leaving:
            table.resting[tid] = status
            if event and tid in self._expected:
                self._expected.discard(tid)
                with unless_killed(tid):
                    self._woken(tracer.threads[tid])
        else:
            tracer.dispatch(tid, status)

    def _outstanding(self) -> list[int]:
        """The threads that have yet to stop."""
        states = self._table.states
        self._expected &= states.keys()
        return [tid for tid in self._expected if self._moves(tid, states[tid])]

    def _moves(self, tid: int, state: TranslatedThread) -> bool:
        """Whether a thread may be running."""
        table = self._table
        if self._tracer.leaving or tid in table.resting or state.asking is not None:
            return False
        sleep = table.asleep.get(tid)
        if sleep is not None and not proc.slept_on(tid, sleep):
            table.forget_sleep(tid)
            sleep = None
        return sleep is None

    def _catch_up(self) -> None:
        """A thread that woke while its budget was being set may have undone that."""
        table = self._table
        written = dict(table.asleep)
        while woken := [tid for tid, sleep in written.items() if not proc.slept_on(tid, sleep)]:
            for tid in woken:
                del written[tid]
                table.forget_sleep(tid)
            self._bring_to_rest()
            for tid in woken:
                state = table.states.get(tid)
                if state is not None:
                    self._resynchronise(state)
                if tid in table.asleep:
                    written[tid] = table.asleep[tid]


def _counts(space: CodeCache, pc: int) -> bool:
    """Whether a thread at `pc` is about to write a counter: in a fragment, on its way to where it
    is given an allowance, or there; not at a stop."""
    if pc in space.memory.refill:
        return True
    place = space.memory.locate(pc)
    return place is not None and place.block.counting(pc) and space.memory.stop_at(pc) is None
