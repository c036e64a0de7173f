"""Regions of interest under the translate engine: where they begin and end, to the instruction.

A block at which a region begins or ends has a stop in place of its copy's first instruction
while that is so. Instructions are counted down in shares: each thread has one, and stops in the
block that goes beyond it. It then executes the rest of its share at the program's own
address, step by step; what is left to all is then shared out anew, or the region changes.
What is left is always what the threads' counters say, so that no error can add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from livepro.engines.region import Arrival, Phase, Region, RegionWatch
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.stop_reasons import RegionStop
from livepro.engines.translate.counting.budget import ENDLESS, SHARE
from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.translate.threads.running import ThreadRunner
from livepro.engines.translate.threads.suspending import Suspender
from livepro.engines.translate.threads.table import ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.engines.window import BETWEEN, Position
from livepro.isa.base import Isa
from livepro.model import Flow
from livepro.tracee import Tracer

_FEW = 8  # instructions for each thread: less is not shared out, but left to one of them


def _ahead(position: Position) -> int:
    """Instructions taken from a thread's budget that it has yet to execute."""
    return position.charged - position.executed - position.owed


def _committed(state: TranslatedThread, where: Position) -> int:
    """Instructions that a thread will execute before it can stop: one that is stepped can behind each."""
    ahead = _ahead(where)
    return min(ahead, 1) if state.mode is Mode.NATIVE else ahead


class RegionMeter:
    """Keeps to a region of interest (`region`; None: all counts): begins and ends it to the instruction."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        region: RegionWatch | None,
        bounds: Region | None,
        table: ThreadTable,
        ledger: Ledger,
        suspender: Suspender,
        runner: ThreadRunner,
    ) -> None:
        self._pc_name = isa.registers.pc
        self._backend = backend
        self._tracer = tracer
        self._region = region
        self._target = 0 if bounds is None or bounds.start is not None else bounds.ahead
        self._table = table
        self._ledger = ledger
        self._suspender = suspender
        self._runner = runner
        self._ended = 0

    # -- where it begins and ends

    def rearm(self) -> None:
        """See `engines.region.Bounded`."""
        if self._region is not None:
            for process, space in self._table.spaces.items():
                for pc in self._region.armed_places(process):
                    space.regions.arm(pc)

    def arrived(self, state: TranslatedThread, stop: RegionStop) -> None:
        """See `running.Metering`."""
        region = self._region
        assert region is not None
        process = state.thread.process
        if region.armed(process, stop.pc):
            self._arrive(region, state, stop.block)
        if region.armed(process, stop.pc) and not self._tracer.leaving:
            self._runner.native.step(state, stop.pc)  # past the stop, which is for the next to come
            return
        state.space.regions.disarm(stop.block.start)
        self._runner.go(state, stop.block.start)

    def arrives_uncopied(self, state: TranslatedThread, pc: int) -> None:
        """See `running.Metering`."""
        region = self._region
        if region is not None and region.armed(state.thread.process, pc):
            block = state.space.builder.uncopied(pc)
            if block is not None:
                self._arrive(region, state, block)

    def _arrive(self, region: RegionWatch, state: TranslatedThread, block: Fragment) -> None:
        """A thread stands before the first instruction of a block, which is armed."""
        state.asking = block.position(0, counted=False)
        slot, length = block.slot, len(block.source.facts)
        executions = self._begun(state, slot, length)
        region.arrived(state.thread, Arrival(block.source.pc, slot, length, executions))
        state.asking = None

    @contextmanager
    def passing(self, arrived: Mapping[int, Arrival]) -> Iterator[None]:
        moved = {tid: position for tid, position in self._unexecuted(arrived).items() if position is not None}
        self._ledger.moved.update(moved)
        try:
            yield
        finally:
            for tid in moved:
                self._ledger.moved.pop(tid, None)

    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]:
        return [tid for tid, position in self._unexecuted(arrived).items() if position is None]

    def _unexecuted(self, arrived: Mapping[int, Arrival]) -> dict[int, Position | None]:
        """The threads, but for one that asks, that have not executed the instruction which they have arrived
        at last: where they are when they have, or None if they do not stand there."""
        found: dict[int, Position | None] = {}
        for state in self._table.wanted():
            last = arrived.get(state.thread.tid)
            if last is None or state.asking is not None:
                continue
            slot, length = last.row, last.length
            if self._begun(state, slot, length) != last.executions:
                continue
            where = self._position(state)
            stepped = state.mode is Mode.NATIVE and state.at == last.pc  # it may have been executed by now
            stands = stepped or (where.row == slot and where.length and not where.executed)
            found[state.thread.tid] = Position(slot, 1, 0, length) if stands else None
        return found

    @staticmethod
    def _begun(state: TranslatedThread, slot: int, length: int) -> int:
        """How often a thread has executed the block of a slot, wholly or in part."""
        return state.counters.of(slot) + state.tally.begun(slot, length)

    # -- counting down

    def enrol(self, state: TranslatedThread) -> None:
        """A thread begins. It asks for a share when it has executed its first block."""
        if self._region is not None and self._region.metering and state.thread.process.wanted:
            state.budget.set(SHARE, 0)

    def ended(self, state: TranslatedThread) -> None:
        """A thread has ended, or has been let go."""
        if state.thread.process.wanted:
            self._ended += self._ledger.executed(state, BETWEEN)

    def _is_metered(self, state: TranslatedThread) -> bool:
        return self._region is not None and self._region.metering and state.thread.process.wanted

    def _position(self, state: TranslatedThread) -> Position:
        return self._ledger.position(state.tally)

    def _executed_by_all(self) -> int:
        return self._ended + sum(self._ledger.executed(s, self._position(s)) for s in self._table.wanted())

    @property
    def metered_left(self) -> int:
        return self._target - self._executed_by_all()

    def meter(self, instructions: int) -> None:
        self._target = instructions + self._executed_by_all()
        if instructions:
            self._share_out(instructions)
        else:
            for state in self._table.wanted():
                state.budget.set(SHARE, ENDLESS)

    def _share_out(self, remaining: int) -> None:
        """Give each thread a part of what remains. What those that are not at hand will execute
        before they can stop is theirs in any case."""
        positions = {state: self._position(state) for state in self._table.wanted()}
        at_hand = next((state for state in positions if state.asking is not None), None)
        theirs = {state: _committed(state, where) for state, where in positions.items()}
        free = remaining - sum(theirs[state] for state in positions if state is not at_hand)
        part = free // len(positions) if free >= _FEW * len(positions) else 0
        rest = max(free - part * (len(positions) - 1), 1)  # somebody must go on
        for state, where in positions.items():
            share = rest if state is at_hand else theirs[state] + part
            state.share_end = self._ledger.executed(state, where) + share
            state.budget.set(SHARE, share - _ahead(where))

    def resynchronise(self, state: TranslatedThread) -> None:
        """A thread stands still whose countdown was set while it ran."""
        if state.clock is not None:
            state.clock.resynchronise()
        if self._is_metered(state):
            where = self._position(state)
            left = state.share_end - self._ledger.executed(state, where)
            state.budget.set(SHARE, left - _ahead(where))

    def stops_early(self, state: TranslatedThread) -> bool:
        """See `running.Metering`."""
        return self._is_metered(state) and state.budget.left(SHARE) < 0

    def go_on(self, state: TranslatedThread, address: int, within: Fragment | None) -> None:
        """See `running.Metering`."""
        thread, space, name = state.thread, state.space, self._pc_name
        state.mode = Mode.RUNNING
        registers = thread.registers()
        setattr(registers, name, address)
        while (found := self._boundary(space, getattr(registers, name), within)) is None:
            if not self._backend.roll_forward(registers, state.words, state.area_address, thread.read):
                break
        thread.set_registers(registers)
        address = getattr(registers, name)
        place = space.memory.locate(address)
        if found is not None:
            position = found[0].position(found[1], counted=found[2])
        elif place is not None:
            position = self._ledger.position_at(state, address)
        else:
            self._runner.go_unmetered(state, address)
            return
        if state.budget.left(SHARE) + _ahead(position) <= 0 and not self._suspender.halts:
            self._share_spent(state, position)
        left = state.budget.left(SHARE)
        enough = self._tracer.leaving or not self._is_metered(state) or left >= 0
        if enough or found is None or not self._runner.native.step_counted(state, *found[:2]):
            self._runner.go_unmetered(state, address)

    @staticmethod
    def _boundary(
        space: CodeCache, address: int, block: Fragment | None
    ) -> tuple[Fragment, int, bool] | None:
        """The block, the instruction in it that a thread at a cache address is about to execute, and
        whether the block has been counted; None if it is in the midst of something."""
        if block is not None:
            # A jump at its end may have no address of its own.
            at, dirty = address - block.start, block.details.dirty
            index = block.index_at(at)
            if index is not None and index < len(block.source.facts) and not dirty[0] <= at < dirty[1]:
                return block, index, at >= block.counted
        place = space.memory.locate(address)
        return (place.block, place.index, place.counted) if place is not None and place.exact else None

    def leaves(self, state: TranslatedThread, position: Position) -> None:
        """A thread is about to leave a block at a position in it: its share may end before it would have said
        so."""
        if (
            self._is_metered(state)
            and not self._tracer.leaving
            and not self._suspender.halts
            and state.budget.left(SHARE) + _ahead(position) <= 0
        ):
            self._share_spent(state, position)

    def _share_spent(self, state: TranslatedThread, position: Position) -> None:
        """A thread stands at `position`, where its share ends."""
        region = self._region
        assert region is not None
        state.asking = position
        try:
            with self._suspender.halted():
                while region.metering:
                    remaining = self.metered_left
                    if remaining > 0 and not self._bring_forward(remaining):
                        self._share_out(remaining)
                        break
                    self._take_back(state, -min(remaining, 0))
                    region.spent()
                    self._ledger.moved.clear()
        finally:
            self._ledger.moved.clear()
            state.asking = None

    def _bring_forward(self, remaining: int) -> bool:
        """Let threads be where they will be `remaining` instructions from now, if they are within blocks that
        they execute so far before they can stop: a change in the midst of them would be missed."""
        found = {}
        for other in self._table.wanted():
            where = self._position(other)
            more = min(remaining, self._reach(other, where))
            if more > 0:
                remaining -= more
                found[other] = where._replace(executed=where.executed + more, iterations=0)
        if not remaining:
            for other, where in found.items():
                self._ledger.promise(other, where)
        return not remaining

    def _reach(self, state: TranslatedThread, where: Position) -> int:
        """Instructions that a thread at rest will execute of the block it is in: to its end, or to a system
        call, which might last."""
        runs = state.mode is Mode.RUNNING and state.thread.tid in self._table.resting
        if not runs or not where.charged or state.asking is not None:
            return 0
        block = state.space.registry.known(where.row)
        if block is None:
            return 0  # it has been dropped meanwhile
        facts = block.source.facts
        calls = (n + 1 for n in range(where.executed, where.length) if facts[n].flow is Flow.SYSCALL)
        return next(calls, where.length) - where.executed

    def _take_back(self, state: TranslatedThread, over: int) -> None:
        """Let the threads be where they were `over` instructions ago."""
        for other in (state, *(s for s in self._table.wanted() if s is not state)):
            where = self._position(other)
            less = min(over, where.executed, self._counted(other))
            if less > 0:
                self._ledger.moved[other.thread.tid] = where._replace(executed=where.executed - less)
                over -= less
        if over and self._region is not None:
            self._region.late(over)

    def _counted(self, state: TranslatedThread) -> int:
        """What a thread has that may be taken back: what was counted, once counting has begun."""
        region, tally = self._region, state.tally
        if region is None or region.phase is not Phase.COUNTING:
            return ENDLESS
        now = self._ledger.raw_counts(tally).at(self._ledger.position(tally))
        return tally.window.counted(now).instructions(state.space.registry.lengths())
