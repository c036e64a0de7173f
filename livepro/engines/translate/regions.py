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

from livepro.engines.base import EngineOptions
from livepro.engines.recording import ThreadTally
from livepro.engines.region import Arrival, Phase
from livepro.engines.translate.budget import ENDLESS, SHARE
from livepro.engines.translate.cache import Block, Stop
from livepro.engines.translate.evicting import Evicting
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.window import BETWEEN, Position
from livepro.isa.base import Isa, Quirk
from livepro.tracee import TracedThread

_FEW = 8  # instructions for each thread: less is not shared out, but left to one of them


def _ahead(position: Position) -> int:
    """Instructions taken from a thread's budget that it has yet to execute."""
    return position.charged - position.executed - position.owed


class Regions(Evicting):
    """The part of the translate engine that keeps to a region."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        region = options.region
        self._target = 0 if region is None or region.start is not None else region.skip or region.count
        self._ended = 0
        self._moved: dict[int, Position] = {}

    # -- where it begins and ends

    def rearm(self) -> None:
        if self.region is not None:
            for process, space in self._spaces.items():
                for pc in self.region.armed_places(process):
                    space.arm(pc)

    def _at_region(self, state: TranslatedThread, stop: Stop) -> None:
        """A thread stands before the first instruction of a block, which may be armed."""
        block, region = stop.block, self.region
        assert block is not None
        assert region is not None
        process = state.thread.process
        if region.armed(process, stop.pc):
            state.asking = block.position(0, counted=False)
            slot, length = block.slot, len(block.source.facts)
            executions = self._begun(state, slot, length)
            region.arrived(state.thread, Arrival(stop.pc, slot, length, executions))
            state.asking = None
        if region.armed(process, stop.pc) and not self.leaving:
            self._step_natively(state, stop.pc)  # past the stop, which is for the next to come
            return
        state.space.disarm(block.start)
        self._go(state, block.start)

    @contextmanager
    def passing(self, arrived: Mapping[int, Arrival]) -> Iterator[None]:
        moved = {tid: position for tid, position in self._unexecuted(arrived).items() if position is not None}
        self._moved.update(moved)
        try:
            yield
        finally:
            for tid in moved:
                self._moved.pop(tid, None)

    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]:
        return [tid for tid, position in self._unexecuted(arrived).items() if position is None]

    def _unexecuted(self, arrived: Mapping[int, Arrival]) -> dict[int, Position | None]:
        """The threads, but for one that asks, that have not executed the instruction which they have arrived
        at last: where they are when they have, or None if they do not stand there."""
        found: dict[int, Position | None] = {}
        for state in self._metered():
            last = arrived.get(state.thread.tid)
            if last is None or state.asking is not None:
                continue
            slot, length = last.row, last.length
            if self._begun(state, slot, length) != last.executions:
                continue
            where = self.position(state.tally)
            stepped = state.mode is Mode.NATIVE and state.at == last.pc  # it may have been executed by now
            stands = stepped or (where.row == slot and where.length and not where.executed)
            found[state.thread.tid] = Position(slot, 1, 0, length) if stands else None
        return found

    @staticmethod
    def _begun(state: TranslatedThread, slot: int, length: int) -> int:
        """How often a thread has executed the block of a slot, wholly or in part."""
        return state.counters.of(slot) + state.tally.begun(slot, length)

    # -- counting down

    def _enrol_share(self, state: TranslatedThread) -> None:
        """A thread begins. It asks for a share when it has executed its first block."""
        if self.region is not None and self.region.metering and state.thread.process.wanted:
            state.budget.set(SHARE, 0)

    def _close(self, state: TranslatedThread) -> None:
        if state.thread.process.wanted:
            self._ended += self._executed(state, BETWEEN)

    def _is_metered(self, state: TranslatedThread) -> bool:
        return self.region is not None and self.region.metering and state.thread.process.wanted

    def _metered(self) -> list[TranslatedThread]:
        return [state for state in self._states.values() if state.thread.process.wanted]

    def _executed(self, state: TranslatedThread, position: Position) -> int:
        """All instructions that a thread which stands still at `position` has executed."""
        lengths, tally = state.space.lengths(), state.tally
        total = int(self._counted_by(state) @ lengths)
        total += sum(times * int(lengths[slot]) for slot, times in tally.entries.items())
        total += sum(times * count for (_, count), times in tally.partial.items())
        return total + position.executed - position.charged

    def _executed_by_all(self) -> int:
        return self._ended + sum(self._executed(s, self.position(s.tally)) for s in self._metered())

    @property
    def metered_left(self) -> int:
        return self._target - self._executed_by_all()

    def meter(self, instructions: int) -> None:
        self._target = instructions + self._executed_by_all()
        if instructions:
            self._share_out(instructions)
        else:
            for state in self._metered():
                state.budget.set(SHARE, ENDLESS)

    def _share_out(self, remaining: int) -> None:
        """Give each thread a part of what remains. What those that are not at hand will execute
        before they can stop is theirs in any case."""
        positions = {state: self.position(state.tally) for state in self._metered()}
        at_hand = next((state for state in positions if state.asking is not None), None)
        free = remaining - sum(_ahead(where) for state, where in positions.items() if state is not at_hand)
        part = free // len(positions) if free >= _FEW * len(positions) else 0
        rest = max(free - part * (len(positions) - 1), 1)  # somebody must go on
        for state, where in positions.items():
            share = rest if state is at_hand else _ahead(where) + part
            state.share_end = self._executed(state, where) + share
            state.budget.set(SHARE, share - _ahead(where))

    def _resynchronise(self, state: TranslatedThread) -> None:
        super()._resynchronise(state)
        if self._is_metered(state):
            where = self.position(state.tally)
            left = state.share_end - self._executed(state, where)
            state.budget.set(SHARE, left - _ahead(where))

    def _go(self, state: TranslatedThread, address: int) -> None:
        within, state.within = state.within, None
        if self.leaving or not self._is_metered(state) or state.budget.left(SHARE) >= 0:
            super()._go(state, address)
        else:
            self._go_on_metered(state, address, within)

    def _go_on_metered(self, state: TranslatedThread, address: int, within: Block | None) -> None:
        """Let a thread run on from a cache address, in the block `within` if that is known, whose
        share does not reach to the end of the block."""
        thread, space, name = state.thread, state.space, self.isa.registers.pc
        state.mode = Mode.RUNNING
        registers = thread.registers()
        setattr(registers, name, address)
        while (found := self._boundary(space, getattr(registers, name), within)) is None:
            if not self._backend.catch_up(registers, state.words, state.area_address, thread.read):
                break
        thread.set_registers(registers)
        address = getattr(registers, name)
        place = space.locate(address)
        if found is not None:
            position = found[0].position(found[1], counted=found[2])
        elif place is not None:
            position = self._position_at(state, address)
        else:
            super()._go(state, address)
            return
        if state.budget.left(SHARE) + _ahead(position) <= 0 and not self._halts:
            self._share_spent(state, position)
        left = state.budget.left(SHARE)
        enough = self.leaving or not self._is_metered(state) or left >= 0
        if enough or found is None or not self._step_one(state, *found[:2]):
            super()._go(state, address)

    @staticmethod
    def _boundary(space: CodeSpace, address: int, block: Block | None) -> tuple[Block, int, bool] | None:
        """The block, the instruction in it that a thread at a cache address is about to execute, and
        whether the block has been counted; None if it is in the midst of something."""
        if block is not None:
            # A jump at its end may have no address of its own.
            at, marks, dirty = address - block.start, block.marks, block.details.dirty
            if at in marks and not dirty[0] <= at < dirty[1]:
                index = marks.index(at)
                if index < len(block.source.facts):
                    return block, index, at >= block.counted
        place = space.locate(address)
        return (place.block, place.index, place.counted) if place is not None and place.exact else None

    def _budget_spent(self, state: TranslatedThread, stop: Stop) -> None:
        super()._budget_spent(state, stop)
        state.within = stop.block

    def _uncount(self, state: TranslatedThread, block: Block, count: int, *, counted: bool) -> None:
        position = block.position(count, counted=counted)
        if (
            count
            and not self.leaving
            and not self._halts
            and self._is_metered(state)
            and state.budget.left(SHARE) + _ahead(position) <= 0
        ):
            self._share_spent(state, position)  # it leaves the block before it would have said so
        super()._uncount(state, block, count, counted=counted)

    def _share_spent(self, state: TranslatedThread, position: Position) -> None:
        """A thread stands at `position`, where its share ends."""
        region = self.region
        assert region is not None
        state.asking = position
        try:
            with self.halted():
                while region.metering:
                    remaining = self.metered_left
                    if remaining > 0:
                        self._share_out(remaining)
                        break
                    self._take_back(state, -remaining)
                    region.spent()
                    self._moved.clear()
        finally:
            self._moved.clear()
            state.asking = None

    def _take_back(self, state: TranslatedThread, over: int) -> None:
        """Let the threads be where they were `over` instructions ago."""
        for other in (state, *(s for s in self._metered() if s is not state)):
            where = self.position(other.tally)
            less = min(over, where.executed, self._counted(other))
            if less > 0:
                self._moved[other.thread.tid] = where._replace(executed=where.executed - less)
                over -= less
        if over and self.region is not None:
            self.region.late(over)

    def _counted(self, state: TranslatedThread) -> int:
        """What a thread has that may be taken back: what was counted, once counting has begun."""
        region, tally = self.region, state.tally
        if region is None or region.phase is not Phase.COUNTING:
            return ENDLESS
        now = self.raw_counts(tally).at(self.position(tally))
        return tally.window.counted(now).instructions(state.space.lengths())

    def _step_one(self, state: TranslatedThread, block: Block, index: int) -> bool:
        """Execute one instruction of a block that has been counted at its own address; False
        where it cannot be executed by itself."""
        source = block.source
        first, end = source.offsets[index : index + 2]
        encoding = source.code[first:end]
        code = self.isa.decode_block(encoding, source.pc + first)
        if len(code) != 1 or code.quirks[0] in (Quirk.SHADOW, Quirk.EXCLUSIVE):
            return False
        if code.reps[0]:
            state.repeating = encoding
            self._charge_iterations(state, 1)
        resume = block.start + block.marks[index + 1]
        raises = self._backend.raises_trap(encoding)
        state.within = block
        self._begin_native(state, Stop("native", block, 0, index, resume, True, raises))
        return True

    def _charge_iterations(self, state: TranslatedThread, sign: int) -> None:
        """Count the iterations that a rep instruction has before it, or take off those it still has."""
        if state.repeating:
            state.tally.rep_iterations += sign * self.isa.rep_count(state.repeating, state.thread.registers())
            if sign < 0:
                state.repeating = b""

    def _end_native(self, state: TranslatedThread) -> None:
        self._charge_iterations(state, -1)
        super()._end_native(state)

    def _signalled_natively(self, state: TranslatedThread, number: int, caught: bool) -> None:
        if caught:
            self._charge_iterations(state, -1)
        super()._signalled_natively(state, number, caught)

    def _park(self, state: TranslatedThread, registers: object, pc: int) -> None:
        self._charge_iterations(state, -1)
        super()._park(state, registers, pc)

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        state = self._states.get(thread.tid)
        if state is not None:
            self._charge_iterations(state, -1)

    def position(self, tally: ThreadTally) -> Position:
        state = self._state_of(tally)
        moved = self._moved.get(tally.thread.tid)
        if state is not None and moved is not None:
            return moved
        position = super().position(tally)
        if state is not None and state.repeating and state.asking is None:
            left = self.isa.rep_count(state.repeating, state.thread.registers())
            position = position._replace(iterations=left)
        return position
