"""The lives of threads: each gets an area for its counters when it begins, and gives it back when it ends."""

from __future__ import annotations

from livepro.engines.base import EngineOptions
from livepro.engines.control import Control
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.translate import layout
from livepro.engines.translate.counting.intervals import IntervalClock
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.lifecycle.attaching import Attacher
from livepro.engines.translate.lifecycle.opening import CacheOpener
from livepro.engines.translate.signals.deferring import Deferral
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.metering import RegionMeter
from livepro.engines.translate.threads.native import NativeStepper
from livepro.engines.translate.threads.room import CacheRoom
from livepro.engines.translate.threads.suspending import Suspender
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.engines.translate.translator.building import EAGER
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.window import BETWEEN
from livepro.isa.base import Isa
from livepro.tracee import TracedThread
from livepro.tracee.stops import unless_killed


class ThreadLives:
    """Has threads begin and end."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        options: EngineOptions,
        control: Control,
        countdown: Countdown,
        table: ThreadTable,
        pc: ProgramCounter,
        ledger: Ledger,
        deferral: Deferral,
        syscalls: SyscallMonitor,
        room: CacheRoom,
        opener: CacheOpener,
        attacher: Attacher,
        suspender: Suspender,
        native: NativeStepper,
        meter: RegionMeter,
    ) -> None:
        self._isa = isa
        self._backend = backend
        self._options = options
        self._control = control
        self._countdown = countdown
        self._table = table
        self._pc = pc
        self._ledger = ledger
        self._deferral = deferral
        self._syscalls = syscalls
        self._room = room
        self._opener = opener
        self._attacher = attacher
        self._suspender = suspender
        self._native = native
        self._meter = meter
        if options.stream is not None:
            options.stream.divide = self._divide

    def begin(self, thread: TracedThread, record: ImageRecord, tally: ThreadTally) -> None:
        """A stopped thread begins to be counted: put it where it goes on in its code cache. Raises
        LiveproError or OSError for one that cannot be translated."""
        process, backend = thread.process, self._backend
        if thread.attached:
            self._attacher.check_takeable(thread)
            self._attacher.abort_sequence(thread)  # calls made as the thread would make the kernel forget it
        space = self._table.spaces.get(process)
        if space is None:
            inherited = self._table.inherited.get(process)
            if inherited is not None:
                space = self._opener.inherit(thread, inherited)
                del self._table.inherited[process]
            elif process.attached:
                space = self._opener.open_running(thread, record, self._attacher.labeller(process))
            else:
                space = self._opener.open(thread, record)
        area = self._opener.take_area(thread, space)
        address = space.areas.area_address(area)
        state = TranslatedThread(thread, record, tally, space, area)
        state.words[: layout.COUNTERS // 8] = 0
        state.keep_countdown(self._countdown)
        self._record(state)
        backend.prepare_return(state.words, address, space.memory.resume)
        if self._options.cut is not None:
            clock = IntervalClock(state.counters, state.budget, tally, space.registry, self._options.cut)
            state.clock = clock
            if self._control.paused:
                clock.freeze(BETWEEN)
        self._meter.enrol(state)
        self._table.states[thread.tid] = state
        placed = False
        try:
            with unless_killed(thread.tid):
                self._syscalls.actions[process].enters_cache(thread.tid)
            placed = self._place(state, address)
        finally:
            if not placed:  # killed: nothing of where it stands was executed by it, but by its parent
                state.mode = Mode.PARTED

    def _place(self, state: TranslatedThread, address: int) -> bool:
        """Put a thread, whose area is at `address`, where it goes on in its code cache. False if it has been
        killed."""
        thread, space, backend = state.thread, state.space, self._backend
        if thread.attached:
            self._attacher.open_foreseen(state)
            if self._attacher.take(state):
                backend.enter_area(thread.tid, address, state.words)
                if state.lends:
                    self._pc.lead_on(state, self._pc.of(thread.tid))
                return True
        pc = self._pc.of(thread.tid)
        place = space.memory.locate(pc)
        if place is not None:
            # Born of a system call in the cache: it goes on behind it.
            pc = place.pc
            registers = thread.registers()
            backend.behind_syscall(registers, pc)
            thread.set_registers(registers)
        inherits = place is not None
        state.program_base = backend.enter_area(thread.tid, address, state.words, inherited=inherits)
        start = self._room.translate(state, pc, eager=0 if thread.attached else EAGER)
        if start is None:
            self._native.prepare(state, pc)  # it will fault there
            return True
        return self._pc.lead(thread.tid, start)

    def _record(self, state: TranslatedThread) -> None:
        """Begin a thread's event stream, if there are any."""
        recorder, recording = self._options.stream, state.space.emitter.recording
        if recorder is not None and recording is not None:
            # A forked child's fragments name blocks as its parent's do.
            recorder.image(state.record, self._isa).blocks = recording.blocks
            stream = recorder.thread(state.thread, state.record, self._isa)
            from livepro.engines.stream.filtering import Repeats
            from livepro.engines.translate.counting.filtered import FilteredTrace
            from livepro.engines.translate.counting.recorded import TranslateTrace
            from livepro.engines.translate.counting.repeated import RepeatedTrace

            state.lends = state.space.emitter.lends
            state.words[layout.LENDS // 8] = state.lends
            asked, words = (recorder, stream), (state.words, self._isa)
            if recorder.filter is None:
                state.trace = TranslateTrace(*asked, recording.blocks, *words)
            elif isinstance(recorder.filter, Repeats):
                state.trace = RepeatedTrace(*asked, recording, *words, state.space)
            else:
                lines = recorder.filter, state.area_address
                state.trace = FilteredTrace(*asked, recording.blocks, *words, state.space, *lines)

    def _divide(self) -> None:
        """See `livepro.engines.stream.recorder.Recorder.divide`."""
        from livepro.engines.translate.counting.filtered import FilteredTrace

        ledger = self._ledger
        for tid, state in self._table.states.items():
            trace, tally = state.trace, state.tally
            if isinstance(trace, FilteredTrace):
                pc = self._pc.of(tid) if tid in self._table.resting else 0
                trace.divide(ledger.raw_counts(tally).at(ledger.position(tally)), pc, state.thread)

    def exiting(self, thread: TracedThread, *, in_exec: bool) -> None:
        """A thread is about to end (`in_exec`: by another one's, or its own, exec): take down what it has
        executed."""
        state = self._table.states.get(thread.tid)
        if state is None:
            return
        self._native.take_off_iterations(state)
        if state.mode in (Mode.RUNNING, Mode.SETTLING) and not in_exec:
            self._suspender.leave_counter(state)
            pc = state.going_to(self._pc.of(thread.tid))
            place = state.space.memory.locate(pc)
            if place is not None:
                if place.at_rep:
                    self._ledger.refund(state, place, thread.registers())
                counted, _ = place.block.charge(pc)
                if state.trace is not None:
                    state.trace.exits_at(place.block, pc)
                self._ledger.record_partial(state, place.block, place.executed, counted=counted)
        elif state.native is not None:
            stop = state.native
            executed = stop.index + (in_exec or self._pc.of(thread.tid) != state.at)
            self._ledger.record_partial(state, state.native.block, executed, counted=stop.counted)
        self.close(state)

    def gone(self, thread: TracedThread) -> None:
        """A thread has ended."""
        state = self._table.states.get(thread.tid)
        if state is not None:
            self.close(state)

    def close(self, state: TranslatedThread) -> None:
        """Take a thread's counters down and give its area back."""
        self._meter.ended(state)
        if state.trace is not None:
            state.trace.end()
        tid, space = state.thread.tid, state.space
        space.generated.repair()
        self._deferral.forget(tid)
        self._syscalls.changing.discard(tid)
        self._syscalls.forget(tid)
        if space.trust.guard is not None:
            space.trust.guard.moved(tid)
        with space.registry.moving():
            if self._table.states.get(tid) is state:
                del self._table.states[tid]
            self._ledger.collect(state)
            if state.trace is not None:
                state.trace.executed(state.tally.raw_counts())
            state.words[: layout.COUNTERS // 8] = 0
            state.counters.clear()
            state.tally.close(space.registry.lengths())
        space.areas.give_back(state.area)
