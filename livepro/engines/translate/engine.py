"""The translate engine: threads run from a code cache that counts, and stop only for what is new.

Here it is put together from its parts; `docs/architecture.md` leads through them.
"""

from __future__ import annotations

import gc
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from livepro.engines.base import Engine, EngineOptions
from livepro.engines.live import LiveCounts
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.region import Arrival
from livepro.engines.translate import backend_for
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.counting.live import translated
from livepro.engines.translate.counting.statistics import Statistics
from livepro.engines.translate.counting.writing_down import write_down
from livepro.engines.translate.lifecycle.attaching import Attacher
from livepro.engines.translate.lifecycle.detaching import Detacher
from livepro.engines.translate.lifecycle.lives import ThreadLives
from livepro.engines.translate.lifecycle.opening import CacheOpener
from livepro.engines.translate.lifecycle.unmeasured import Unmeasured
from livepro.engines.translate.persist.keeping import keep
from livepro.engines.translate.signals.actions import SignalActions
from livepro.engines.translate.signals.deferring import Deferral
from livepro.engines.translate.signals.delivery import SignalDelivery
from livepro.engines.translate.signals.trapping import TrapHandlers
from livepro.engines.translate.signals.underway import settle
from livepro.engines.translate.threads.calling import TargetCalls, is_event, stop_anew
from livepro.engines.translate.threads.flush_policy import FlushPolicy
from livepro.engines.translate.threads.metering import RegionMeter
from livepro.engines.translate.threads.room import CacheRoom, open_persisted_cache
from livepro.engines.translate.threads.running import ThreadRunner
from livepro.engines.translate.threads.stops import StopQueue
from livepro.engines.translate.threads.suspending import Suspender
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.window import Counts, Position, Vectors
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.linux.vm import shares_handlers
from livepro.tracee import TracedProcess, TracedThread

if TYPE_CHECKING:
    from livepro.engines.translate.lifecycle.homing import TranslateHoming

LONG = 10_000_000
"""Instructions in an interval that may end in a few stops."""

# A code cache is a net of parts, mappings (8 MB resident) and descriptors (6) that only the cycle collector
# takes apart; it takes 20 ms for a small run, some seconds for one with millions of blocks.
_COLLECTED = 32  # at once


class TranslateEngine(Engine):
    """See `livepro.engines.base.Engine`.

    `table` are the threads and code caches, `ledger` what threads have executed. `runner` lets them run from
    the cache and answers their stops, `delivery` gives them signals; `attacher` takes threads over,
    `detacher` lets them go, `suspender` brings all to rest, `metering` keeps to a region. `opener` and `room`
    make code caches and what is in them, `lives` has threads begin and end. `syscalls` sees to system calls
    that matter, `deferral` to threads that signals leave no time, `stops` to the order of stops.
    """

    detacher: Detacher
    metering: RegionMeter
    lives: ThreadLives

    name = "translate"
    takes_singly = True

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        tracer, region = self.tracer, self.region
        self.backend = backend = backend_for(isa.name)
        backend.check_processor()
        metered = options.region is not None and options.region.metered
        self.countdown = countdown = self._count_down(metered=metered)
        self.table = table = ThreadTable()
        self.pc = pc = ProgramCounter(isa, backend)
        self.calls = calls = TargetCalls(isa, backend)
        self.deferral = deferral = Deferral(isa, tracer)
        self.stops = stops = StopQueue(tracer, deferral)
        self.syscalls = syscalls = SyscallMonitor(
            *(isa, backend, tracer, deferral, self.traps, self.inprocess.sizes),
            settle=lambda *call: settle(table, self.suspender, *call),
            warn=self.warnings.append,
        )
        self._persisted = persisted = open_persisted_cache(isa, options, backend, syscalls.watched, countdown)
        # Some parts ask others that are made after them, when they are used and not before.
        self.ledger = ledger = Ledger(isa, table, pc, countdown, lambda *left: self.metering.leaves(*left))
        self.suspender = suspender = Suspender(
            *(isa, backend, tracer, table, pc, stops, countdown, self.woken),
            resynchronise=lambda state: self.metering.resynchronise(state),
        )
        flushes = FlushPolicy(isa, tracer, table, pc, suspender, persisted)
        self.room = room = CacheRoom(isa, backend, tracer, table, calls, syscalls, flushes, persisted)
        self.runner = runner = ThreadRunner(
            *(isa, backend, tracer, table, pc, stops, ledger, deferral, syscalls, room, self.inprocess),
            self.debuggers,
            detaching=lambda: self.detacher,
            metering=lambda: self.metering,
        )
        self.delivery = delivery = SignalDelivery(
            *(isa, backend, tracer, table, pc, ledger, deferral, syscalls, room, runner, self.traps),
            TrapHandlers(isa, calls, syscalls),
            part=self.part,
        )
        self.detacher = Detacher(
            *(isa, backend, tracer, table, pc, calls, ledger, deferral, syscalls, runner.native),
            *(delivery.translation, lambda state: self.lives.close(state)),
        )
        self.metering = metering = RegionMeter(
            *(isa, backend, tracer, region, options.region, table, ledger, suspender, runner)
        )
        self.opener = opener = CacheOpener(
            isa, backend, options, region, countdown, table, pc, calls, syscalls
        )
        self.attacher = attacher = Attacher(isa, backend, tracer, table, pc, stops, calls, room, persisted)
        self.lives = ThreadLives(
            *(isa, backend, options, self.control, countdown, table, pc, ledger, deferral, syscalls, room),
            *(opener, attacher, suspender, runner.native, metering),
        )
        self.unmeasured = Unmeasured(isa, backend, table, calls, syscalls, self.warnings)
        self._statistics = Statistics()
        self._given_up = 0  # code caches of processes that have ended, since they were last collected

    def _count_down(self, *, metered: bool) -> Countdown:
        """How threads count down to the end of an interval, or of their share of a region."""
        cut = self.options.cut
        if cut is not None and not metered and cut(0) >= LONG:
            return self.backend.countdown
        return Countdown.BUDGET if metered or cut is not None else Countdown.NONE

    def run(self) -> None:
        # Hundreds of thousands of small objects that live to the end: the cycle collector would look
        # through them again and again, and find nothing. But for whole code caches: see `process_ended`.
        collecting = gc.isenabled()
        gc.disable()
        try:
            self.runner.watch(self.attacher.next_stop)
        finally:
            if collecting:
                gc.enable()
        self.finish()
        if self.opener.compiler is not None:
            self.opener.compiler.close()
        self.stats |= self._statistics.document(
            self.stops.count, self.runner.answered, self.room.seconds, self.runner.missed
        )

    # -- processes

    def look_ahead(self, process: TracedProcess) -> None:
        self.attacher.look_ahead(process)

    def entered(self, process: TracedProcess) -> None:
        self.attacher.entered(process)

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        super().process_started(process, parent)
        actions, table = SignalActions(), self.table
        if parent is not None:
            self.unmeasured.born(process, parent)
        if parent is not None and parent in table.spaces:
            table.inherited[process] = table.spaces[parent]
            actions = self.syscalls.actions[parent]
            if not shares_handlers(self.isa.syscalls.numbers["kcmp"], process.pid, parent.living):
                actions = actions.copy(process.pid, parent.living)
        self.syscalls.actions[process] = actions

    def process_ended(self, process: TracedProcess) -> None:
        self.syscalls.actions.pop(process, None)
        space, unwanted = self.table.give_up(process)
        if space is not None:
            write_down(self.records[process], space, self.control.snapshots)
        super().process_ended(process)
        if space is not None:
            alone = space not in self.table.spaces.values()
            if space.trust.guard is not None and alone:
                space.trust.guard.close()
                self._statistics.add_guard(space.trust.guard)
            self._statistics.add(space)
            if self._persisted is not None:
                parent = None if space.parent is None else space.parent()
                living = parent if parent in self.table.spaces.values() else None
                keep(space, self._persisted, self.isa.describe, living)
            if unwanted:
                space.close()
            self._given_up += 1
            if self._given_up == _COLLECTED:
                self._given_up = 0
                gc.collect()

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        """Put a child that runs from its copy of the cache back into its own code. One that
        shares its parent's memory stays translated until it execs."""
        space = self.table.spaces.get(parent)
        if space is None:
            return True
        if self.opener.shares_memory(tid, parent.living):
            return False
        self.unmeasured.out_of_cache(tid, space)
        # (clone3 can leave handlers behind.)
        actions = self.syscalls.actions[parent].copy(tid, parent.living)
        self.detacher.give_handlers_back(parent, tid, space, actions)
        self.detacher.take_down(parent, tid, space)
        return True

    # -- threads

    def thread_started(self, thread: TracedThread) -> None:
        record = self.records[thread.process]
        tally = ThreadTally(thread, record.store, None)
        self.control.enrol(record, tally)
        if thread.process.measured:
            try:
                self.lives.begin(thread, record, tally)
            except OSError as error:
                if not self.unmeasured.takes(thread, error):
                    raise

    def trapped(self, thread: TracedThread) -> None:
        self.delivery.trapped(thread)

    def signalled(self, thread: TracedThread, number: int) -> None:
        self.delivery.signalled(thread, number)

    def interrupted(self, thread: TracedThread) -> None:
        self.suspender.interrupted(thread)
        self.delivery.interrupted(thread)

    def stopped(self, thread: TracedThread) -> None:
        super().stopped(thread)
        info = ptrace.signal_info(thread.tid)
        if info is not None and not is_event(info):
            stop_anew(thread.tid)  # calls made when it was taken over have brought it out of the stop

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        self.delivery.resume(thread, number)

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        self.lives.exiting(thread, in_exec=in_exec)

    def gone(self, thread: TracedThread) -> None:
        self.lives.gone(thread)
        space = self.table.spaces.get(thread.process)
        if space is not None:
            self.detacher.done_with(thread.process, space)

    # -- letting go

    def leave(self) -> None:
        if not self.leaving:
            self.detacher.begin()
        super().leave()

    def part(self, thread: TracedThread) -> bool:
        return self.detacher.part(thread)

    def homing(self) -> TranslateHoming:
        from livepro.engines.translate.lifecycle.homing import TranslateHoming

        return TranslateHoming(self.isa, self.backend, self.table, self.syscalls.actions, self.calls.by)

    # -- what a region needs

    def rearm(self) -> None:
        self.metering.rearm()

    def meter(self, instructions: int) -> None:
        self.metering.meter(instructions)

    def passing(self, arrived: Mapping[int, Arrival]) -> AbstractContextManager[None]:
        return self.metering.passing(arrived)

    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]:
        return self.metering.called_away(arrived)

    @property
    def metered_left(self) -> int:
        return self.metering.metered_left

    # -- what control, the live view and the report need

    @contextmanager
    def halted(self) -> Iterator[None]:
        with self.suspender.halted():
            yield

    def raw_counts(self, tally: ThreadTally) -> Counts:
        return self.ledger.raw_counts(tally)

    def position(self, tally: ThreadTally) -> Position:
        return self.ledger.position(tally)

    def vectors(self, tally: ThreadTally) -> Vectors | None:
        state = self.table.of(tally)
        return None if state is None else state.clock

    def block_lengths(self, tally: ThreadTally) -> Sequence[int] | npt.NDArray[np.int64]:
        state = self.table.of(tally)
        return super().block_lengths(tally) if state is None else state.space.registry.lengths()

    def block_parts(self, tally: ThreadTally, row: int) -> tuple[bytes, bytes]:
        state = self.table.of(tally)
        if state is None:
            return super().block_parts(tally, row)
        _, code, sizes = state.space.registry.parts(row)
        return code, sizes

    def lengths(self, image: ImageRecord) -> Sequence[int] | npt.NDArray[np.int64]:
        space = self.table.spaces.get(image.process)
        return super().lengths(image) if space is None else space.registry.lengths()

    def live(self, record: ImageRecord, known: Container[TracedThread] = ()) -> LiveCounts | None:
        return translated(record, self.table, known)

    @property
    def instructions(self) -> int:
        total = 0
        for image in self.images:
            closed = {tally.thread: tally for tally in list(image.tallies) if tally.closed}
            counts = self.live(image, closed)
            if counts is not None:
                total += sum(thread.instructions(counts.lengths) for thread in counts.threads)
            elif len(closed) < len(image.tallies):
                raise RuntimeError("counts are being moved")
            total += sum(tally.total for tally in closed.values() if not tally.window.over)
        return max(total, 0)  # a base may be ahead by the blocks that threads were in
