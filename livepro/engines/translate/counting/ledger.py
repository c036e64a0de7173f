"""What each thread has executed, to the instruction: its counters, and where it is in its block."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from livepro.engines.recording import ThreadTally
from livepro.engines.translate import layout
from livepro.engines.translate.codecache.fragment import Fragment, Place
from livepro.engines.translate.codecache.stop_reasons import (
    ChangedStop,
    ChunkStop,
    NativeStop,
    PinnedStop,
    RegionStop,
    SupersededStop,
)
from livepro.engines.translate.counting.sparse import from_mapping, total
from livepro.engines.translate.thread import NOWHERE, Mode, TranslatedThread
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.window import BETWEEN, Counts, Position
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.tracee import TracedThread
from livepro.tracee.stops import trap_pending

_REP_ITERATIONS = layout.REP_ITERATIONS // 8


class Ledger:
    """Keeps the accounts of all threads.

    `moved` are positions (by tid) that threads are said to be in, other than where they stand. `leaves` is
    told before a thread is recorded to have left a block in its midst, at a position.
    """

    def __init__(
        self,
        isa: Isa,
        table: ThreadTable,
        pc: ProgramCounter,
        countdown: Countdown,
        leaves: Callable[[TranslatedThread, Position], None],
    ) -> None:
        self.moved: dict[int, Position] = {}
        self._isa = isa
        self._table = table
        self._pc = pc
        self._countdown = countdown
        self._leaves = leaves

    # -- counting what was not executed as a whole

    def record_partial(self, state: TranslatedThread, block: Fragment, count: int, *, counted: bool) -> None:
        """A thread left `block` after its first `count` instructions; `counted`: its counter says that
        it has executed all of them."""
        if count:
            self._leaves(state, block.position(count, counted=counted))
        slot, execution, furthest = state.furthest
        if (slot, execution) == (block.slot, self._execution(state, block.slot, charged=counted)):
            count = max(count, furthest)
        state.furthest = NOWHERE
        if state.trace is not None:
            state.trace.left(block, count, state.thread.registers, recorded=counted)
        tally = state.tally
        whole = count == len(block.source.facts)
        tally.entries[block.slot] += whole - counted
        if count and not whole:
            tally.partial[block.slot, count] += 1
        state.adjust(block.slot, count, len(block.source.facts) if counted else 0)
        if not counted:
            for slot, length in block.details.owed:
                tally.entries[slot] += 1
                state.adjust(slot, length, 0)

    def refund(self, state: TranslatedThread, place: Place, registers: object) -> None:
        """Take off the iterations charged for a rep instruction that has them yet to do."""
        if state.trace is not None:
            state.trace.interrupted(registers)
        state.words[_REP_ITERATIONS] -= np.uint64(self._iterations_left(place, registers))

    def _iterations_left(self, place: Place, registers: object) -> int:
        source = place.block.source
        encoding = source.code[source.offsets[place.index] : source.offsets[place.index + 1]]
        return self._isa.rep_count(encoding, registers)

    def collect(self, state: TranslatedThread) -> None:
        """Give a thread's tally all that the thread has executed, its counters included: they are about to be
        another's."""
        if state.clock is not None:
            state.clock.finish()
        ran, tally = state.counters.ran(), state.tally
        state.space.registry.executed(ran)
        rows, times = total([ran, from_mapping(tally.entries)])
        partial = {key: n for key, n in tally.partial.items() if n}
        tally.conclude(Counts(rows, times, partial, tally.rep_iterations + int(state.words[_REP_ITERATIONS])))

    # -- what has been counted

    def raw_counts(self, tally: ThreadTally) -> Counts:
        """All that is in a thread's counts now."""
        state = self._table.of(tally)
        if state is None:
            return tally.raw_counts()
        entries = self._table.counts_of(state)
        for slot, times in tally.entries.items():
            entries[slot] += times
        iterations = tally.rep_iterations + int(state.words[_REP_ITERATIONS])
        return Counts.dense(entries, tally.partial, iterations)

    def executed(self, state: TranslatedThread, position: Position) -> int:
        """All instructions that a thread which stands still at `position` has executed."""
        lengths, tally = state.space.registry.lengths(), state.tally
        total = int(self._table.counts_of(state) @ lengths)
        total += sum(times * int(lengths[slot]) for slot, times in tally.entries.items())
        total += sum(times * count for (_, count), times in tally.partial.items())
        return total + position.executed - position.charged

    # -- where threads are

    def position(self, tally: ThreadTally) -> Position:
        """Where a thread is in the block that it executes, as far as that is known."""
        state = self._table.of(tally)
        if state is None:
            return BETWEEN
        moved = self.moved.get(tally.thread.tid)
        if moved is not None:
            return moved
        position = self._no_less(state, self._found_at(state))
        if state.repeating and state.asking is None:
            left = self._isa.rep_count(state.repeating, state.thread.registers())
            position = position._replace(iterations=left)
        return position

    def promise(self, state: TranslatedThread, position: Position) -> None:
        """A thread is said to be at a position further on in its block, which it will get to before it can
        stop: for now by `moved`, and later, as long as it has not got there."""
        self.moved[state.thread.tid] = self._no_less(state, position)

    def _found_at(self, state: TranslatedThread) -> Position:
        if state.asking is not None:
            return state.asking
        tid = state.thread.tid
        sleep = self._table.asleep.get(tid)
        if sleep is not None:
            return self.position_at(state, sleep.pc)
        if tid not in self._table.resting:
            return BETWEEN
        try:
            return self.position_at(state, self._pc.of(tid))
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

    def position_at(self, state: TranslatedThread, pc: int) -> Position:
        """Where a thread that stands still at `pc` is in its block."""
        if state.mode is Mode.DELIVERING:
            return BETWEEN  # what it left was taken off when it left
        if state.mode is Mode.NATIVE:
            native = state.native
            if native is None:
                return BETWEEN
            return native.block.position(native.index + (pc != state.at), counted=native.counted)
        memory, pc = state.space.memory, state.going_to(pc)
        place = memory.locate(pc)
        if place is None:
            return BETWEEN  # in a lookup, or at an exit
        block, index = place.block, place.index
        stop = memory.stop_at(pc - self._pc.advance)
        if stop is not None and self._at_breakpoint(state.thread):  # it may be about to say so
            if isinstance(stop, SupersededStop | RegionStop):
                return BETWEEN
            if isinstance(stop, NativeStop | PinnedStop | ChangedStop) and stop.block is block:
                index = min(index, stop.index)
            elif isinstance(stop, ChunkStop) and stop.block is block:
                index = stop.index
        counted, charged = block.charge(pc)
        position = block.position(index, counted=counted)
        if self._countdown and counted and not charged:
            position = position._replace(owed=position.length)
        if place.at_rep:
            position = position._replace(iterations=self._iterations_left(place, state.thread.registers()))
        return position

    def _at_breakpoint(self, thread: TracedThread) -> bool:
        """Whether a thread that stands still has run into a breakpoint."""
        with suppress(OSError):  # it sleeps
            info = ptrace.signal_info(thread.tid)
            if (
                info is not None
                and info.signo == signal.SIGTRAP
                and info.code == self._isa.breakpoint.si_code
            ):
                return True
        with suppress(OSError):
            return trap_pending(thread.tid)
        return False
