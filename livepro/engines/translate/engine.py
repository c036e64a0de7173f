"""The translate engine: threads run from a code cache that counts, and stop only for what is new.

Here are the lives of processes and threads: mapping livepro's memory into an
image, giving each thread an area for its counters, forks, and what was counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from livepro.engines.live import LiveCounts
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.translate import layout, memory
from livepro.engines.translate.actions import SignalActions
from livepro.engines.translate.backend import WHEN_TOLD
from livepro.engines.translate.intervals import IntervalClock
from livepro.engines.translate.keeping import keep
from livepro.engines.translate.live import translated
from livepro.engines.translate.regions import Regions
from livepro.engines.translate.space import EAGER, CodeSpace
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.window import BETWEEN
from livepro.linux import ptrace
from livepro.linux.vm import shares_handlers, shares_memory
from livepro.tracee import TracedProcess, TracedThread

if TYPE_CHECKING:
    from livepro.engines.translate.homing import TranslateHoming


class TranslateEngine(Regions):
    """See `livepro.engines.base.Engine`."""

    name = "translate"
    notices_children = True

    def thread_started(self, thread: TracedThread) -> None:
        process = thread.process
        record = self.records[process]
        tally = ThreadTally(thread, record.store, None)
        self.control.enrol(record, tally)
        if not process.measured:
            return
        if thread.attached:
            self._check_takeable(thread)
            self._abort_sequence(thread)  # calls made as the thread would make the kernel forget it
        space = self._spaces.get(process)
        if space is None:
            inherited = self._inherited.pop(process, None)
            if inherited is not None:
                space = self._inherit(thread, inherited)
            else:
                space = self._open_running(thread) if process.attached else self._open(thread)
        area = self._take_area(thread, space)
        state = TranslatedThread(thread, record, tally, space, area)
        state.words[: layout.COUNTERS // 8] = 0
        state.keep_countdown(self._countdown)
        self._record(state)
        self._backend.prepare_return(state.words, space.memory.area_address(area), space.resume)
        if self.options.cut is not None:
            state.clock = IntervalClock(state.counters, state.budget, tally, space, self.options.cut)
            if self.control.paused:
                state.clock.freeze(BETWEEN)
        self._enrol_share(state)
        self._states[thread.tid] = state
        if thread.attached:
            for mapping in self._foreseen.pop(process, ()):
                self._open_module(state, mapping)
            if self._take(state):
                self._backend.enter_area(thread.tid, space.memory.area_address(area), state.words)
                return
        pc = self._pc(thread.tid)
        place = space.locate(pc)
        if place is not None:
            # Born of a system call in the cache: it goes on behind it.
            pc = place.pc
            registers = thread.registers()
            self._backend.behind_syscall(registers, pc)
            thread.set_registers(registers)
        state.program_base = self._backend.enter_area(
            thread.tid, space.memory.area_address(area), state.words, inherited=place is not None
        )
        start = self._translate(state, pc, eager=0 if thread.attached else EAGER)
        if start is None:
            self._prepare_native(state, pc)  # it will fault there
        else:
            self._lead(thread.tid, start)

    def _record(self, state: TranslatedThread) -> None:
        """Begin a thread's event stream, if there are any."""
        recorder, recording = self.options.stream, state.space.emitter.recording
        if recorder is not None and recording is not None:
            # A forked child's copies name blocks as its parent's do.
            recorder.image(state.record, self.isa).blocks = recording.blocks
            stream = recorder.thread(state.thread, state.record, self.isa)
            from livepro.engines.translate.recorded import TranslateTrace

            state.trace = TranslateTrace(recorder, stream, recording.blocks, state.words, self.isa)

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        super().process_started(process, parent)
        actions = SignalActions()
        if parent is not None and parent in self._spaces:
            self._inherited[process] = self._spaces[parent]
            actions = self._actions[parent]
            if not shares_handlers(self._numbers["kcmp"], process.pid, parent.living):
                actions = actions.copy(process.pid)
        self._actions[process] = actions

    def _inherit(self, thread: TracedThread, space: CodeSpace) -> CodeSpace:
        """The code space of a forked child: its parent's, if they share memory until an
        exec (vfork), else a copy."""
        process = thread.process
        if not self._shares_memory(process.pid, space.process.living):
            sharing = self._sharing(thread, space.gadget)
            create = sharing.create
            # One thread comes through a fork: one window of areas will do.
            data, areas = space.memory.data, space.memory.windows[0]
            memories = memory.ThreadAreas(
                create(data.size, data.base, executable=False, copy=(data, space.memory.used_data())),
                [create(areas.size, areas.base, executable=False, copy=(areas, []))],
            )
            with contextlib.nullcontext() if space.guard is None else space.guard.checking():
                caches = [
                    create(g.file.size, g.file.base, executable=True, copy=(g.file, space.used(g)))
                    for g in space.grounds
                ]
            space = space.fork(process, memories, caches)
            self._free_areas[space] = []
        self._spaces[process] = space
        return space

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        """Put a child that runs from its copy of the cache back into its own code. One that
        shares its parent's memory stays translated until it execs."""
        space = self._spaces.get(parent)
        if space is None:
            return True
        if self._shares_memory(tid, parent.living):
            return False
        structure = self.isa.registers.structure
        registers = ptrace.get_registers(tid, structure)
        place = space.locate(getattr(registers, self.isa.registers.pc))
        if place is not None:
            self._backend.behind_syscall(registers, place.pc)
            setattr(registers, self.isa.registers.pc, place.pc)
        self._backend.let_go(tid, registers)
        self._give_handlers_back(parent, tid, space)
        self._take_down(parent, tid, space)
        return True

    def _shares_memory(self, one: int, other: int) -> bool:
        return bool(shares_memory(self._numbers["kcmp"], one, other))

    def _take_area(self, thread: TracedThread, space: CodeSpace) -> int:
        """The index of an unused area; a window more is mapped if there is none."""
        free = self._free_areas[space]
        if free:
            return free.pop()
        if space.users == space.memory.room:
            sharing = self._sharing(thread, space.gadget)
            place = memory.areas_address(thread.process.space)
            space.memory.windows.append(sharing.create(layout.AREAS_SIZE, place, executable=False))
            thread.process.remapped()
        space.users += 1
        return space.users - 1

    def _open(self, thread: TracedThread) -> CodeSpace:
        """Map livepro's memory into a process that has just begun an image."""
        # At the exec stop the kernel has yet to store that call's result: let it leave the call.
        mask = ptrace.signal_mask(thread.tid)
        ptrace.set_signal_mask(thread.tid, memory.HELD_OFF)
        interrupted = memory.run_to_trap(ptrace.PTRACE_SINGLESTEP, thread.tid)
        ptrace.set_signal_mask(thread.tid, mask)
        if interrupted:
            ptrace.call(ptrace.PTRACE_INTERRUPT, thread.tid)
        entry = self._pc(thread.tid)
        text = thread.read(entry, len(self._backend.gadget))
        thread.write(entry, self._backend.gadget)
        try:
            return self._lay_out(thread, entry)
        finally:
            thread.write(entry, text)

    def _lay_out(
        self, thread: TracedThread, gadget: int, made: list[memory.SharedFile] | None = None
    ) -> CodeSpace:
        process = thread.process
        sharing = self._sharing(thread, gadget)
        made = [] if made is None else made
        data = sharing.create(layout.DATA_SIZE, memory.data_address(process.space), executable=False)
        made.append(data)
        areas = sharing.create(layout.AREAS_SIZE, memory.areas_address(process.space), executable=False)
        made.append(areas)
        process.remapped()
        base = memory.free_near(process.space, gadget, layout.CACHE_SIZE)
        cache = sharing.create(layout.CACHE_SIZE, base, executable=True)
        emitter = self._backend.emitter(data.base, self._watched, self._countdown)
        if self.options.stream is not None:
            emitter.record(self.options.stream.image(self.records[process], self.isa).blocks)
        space = CodeSpace(process, memory.ThreadAreas(data, [areas]), self._backend, self._reader, emitter)
        space.region = self.region
        space.limit(self.options.cache_size)
        space.add_cache(cache)
        for number, when in self._watched.items():
            data.map[layout.WATCHED + number] = when != WHEN_TOLD
        process.remapped()
        self._spaces[process] = space
        self._free_areas[space] = []
        return space

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        super().exiting(thread, in_exec)
        state = self._states.get(thread.tid)
        if state is None:
            return
        if state.mode in (Mode.RUNNING, Mode.SETTLING) and not in_exec:
            self._leave_counter(state)
            pc = self._pc(thread.tid)
            place = state.space.locate(pc)
            if place is not None:
                if place.at_rep:
                    self._refund(state, place, thread.registers())
                counted, _ = place.block.charge(pc)
                if state.trace is not None:
                    state.trace.exits_at(place.block, pc)
                self._uncount(state, place.block, place.executed, counted=counted)
        elif state.native is not None and state.native.block is not None:
            stop = state.native
            executed = stop.index + (in_exec or self._pc(thread.tid) != state.at)
            self._uncount(state, state.native.block, executed, counted=stop.counted)
        self._close(state)

    def gone(self, thread: TracedThread) -> None:
        state = self._states.get(thread.tid)
        if state is not None:
            self._close(state)
        space = self._spaces.get(thread.process)
        if space is not None:
            self._done_with(thread.process, space)

    def _close(self, state: TranslatedThread) -> None:
        """Take a thread's counters down and give its area back."""
        super()._close(state)
        if state.trace is not None:
            state.trace.end()
        state.space.generated.repair()
        self._deferring.pop(state.thread.tid, None)
        self._changing.discard(state.thread.tid)
        if state.space.guard is not None:
            state.space.guard.moved(state.thread.tid)
        with state.space.moving():
            if self._states.get(state.thread.tid) is state:
                del self._states[state.thread.tid]
            self._collect(state)
            state.words[: layout.COUNTERS // 8] = 0
            state.counters.clear()
            state.tally.close(state.space.lengths())
        self._free_areas[state.space].append(state.area)

    @staticmethod
    def _collect(state: TranslatedThread) -> None:
        if state.clock is not None:
            state.clock.finish()
        counters = state.counters.all()
        state.space.executed(counters)
        tally = state.tally
        for slot in np.flatnonzero(counters).tolist():
            tally.entries[slot] += int(counters[slot])
        tally.rep_iterations += int(state.words[layout.REP_ITERATIONS // 8])

    def homing(self) -> TranslateHoming:
        """See `Engine`."""
        from livepro.engines.translate.homing import TranslateHoming

        return TranslateHoming(
            self.isa, self._backend, self._states, self._spaces, self._inherited, self._actions, self._calls
        )

    # -- what the engine delivers

    def process_ended(self, process: TracedProcess) -> None:
        self._actions.pop(process, None)
        space = self._spaces.pop(process, None)
        if space is not None:
            self._write_down(self.records[process], space)
        super().process_ended(process)
        if space is not None:
            kept = space.put_back
            self._blocks += space.translated + len(space.cells) - kept
            self._blocks_put_back += kept
            self._cache_bytes += space.given_back + space.bytes
            self._flushes += space.renewals
            if space.guard is not None and space not in self._spaces.values():
                space.guard.close()
                self._trusted += space.guard.trusted
                self._written += space.guard.writes
            if self._shelf is not None:
                keep(space, self._shelf, self.isa.describe)

    def _write_down(self, record: ImageRecord, space: CodeSpace) -> None:
        """Turn counter slots into rows of the image's own table."""
        used: set[int] = set()
        taken = [
            (snapshot.counts, tally)
            for snapshot in self.control.snapshots
            for tally in record.tallies
            if tally in snapshot.counts
        ]
        for counts, tally in taken:
            used.update(counts[tally].rows.tolist(), (slot for slot, _ in counts[tally].partial))
        in_intervals = np.zeros(len(space.lengths()), bool)
        for tally in record.tallies:
            tally.settle(space.lengths())
            used.update(slot for slot, count in tally.entries.items() if count)
            used.update(slot for slot, _ in tally.partial)
            for interval in tally.intervals:
                in_intervals[interval.rows] = True
        used.update(np.flatnonzero(in_intervals).tolist())
        rows = space.write_down(record.store, np.array(sorted(used), np.int64))
        labels = space.generated.labels
        record.store.labels = {rows[slot]: label for slot, label in labels.items() if slot in rows}
        record.former = np.zeros(len(rows), np.int64)
        record.former[list(rows.values())] = list(rows)
        for tally in record.tallies:
            tally.rename(rows)
        for counts, tally in taken:
            counts[tally] = counts[tally].renamed(rows)

    def lengths(self, image: ImageRecord) -> Sequence[int] | npt.NDArray[np.int64]:
        space = self._spaces.get(image.process)
        return super().lengths(image) if space is None else space.lengths()

    def live(self, record: ImageRecord, known: Container[TracedThread] = ()) -> LiveCounts | None:
        return translated(record, self._spaces, self._states, known)

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
