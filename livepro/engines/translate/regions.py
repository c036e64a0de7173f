"""Regions of interest under the translate engine: where they begin and end, to the instruction.

A block at which a region begins or ends has a stop in place of its copy's first instruction
while that is so. Instructions are counted down in shares: each thread has one, and stops in the
block that goes beyond it. It then executes the rest of its share at the program's own
address, step by step; what is left to all is then shared out anew, or the region changes.
"""

from __future__ import annotations

from livepro.engines.base import EngineOptions
from livepro.engines.recording import ThreadTally
from livepro.engines.region import Phase
from livepro.engines.translate.budget import ENDLESS, SHARE
from livepro.engines.translate.cache import Block, Stop
from livepro.engines.translate.halting import Halting
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.engines.window import Position
from livepro.isa.base import Isa, Quirk
from livepro.tracee import TracedThread

_FEW = 8  # instructions for each thread: less is not shared out, but left to one of them


def _ahead(position: Position) -> int:
    """Instructions taken from a thread's budget that it has yet to execute."""
    return position.charged - position.executed - position.owed


class Regions(Halting):
    """The part of the translate engine that keeps to a region."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        region = options.region
        self._remaining = 0 if region is None or region.start is not None else region.skip or region.count
        self._slept: dict[int, int] = {}

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
            region.arrived()
            state.asking = None
        if region.armed(process, stop.pc) and not self.leaving:
            self._step_natively(state, stop.pc)  # past the stop, which is for the next to come
            return
        state.space.disarm(block.start)
        self._go(state, block.start)

    # -- counting down

    def _enrol_share(self, state: TranslatedThread) -> None:
        """A thread begins. It asks for a share when it has executed its first block."""
        if self.region is not None and self.region.metering and state.thread.process.wanted:
            state.budget.set(SHARE, 0)

    def _return_share(self, state: TranslatedThread) -> None:
        """A thread has ended."""
        if self._is_metered(state):
            self._remaining -= state.granted - state.budget.left(SHARE)

    def _is_metered(self, state: TranslatedThread) -> bool:
        return self.region is not None and self.region.metering and state.thread.process.wanted

    def _metered(self) -> list[TranslatedThread]:
        return [state for state in self._states.values() if state.thread.process.wanted]

    def meter(self, instructions: int) -> None:
        self._remaining = instructions
        for state in self._metered():
            if instructions:
                state.granted = 0
                state.budget.set(SHARE, -_ahead(self.position(state.tally)))
            else:
                state.budget.set(SHARE, ENDLESS)
        if instructions:
            self._share_out()

    def _share_out(self) -> None:
        """Give each thread a part of what remains. What those that are not at hand will execute
        before they can stop is theirs in any case."""
        states = self._metered()
        ahead = {state: _ahead(self.position(state.tally)) for state in states}
        at_hand = [state for state in states if state.asking is not None][:1]
        running = [s for s in states if s not in at_hand and s.thread.tid not in self._asleep]
        free = self._remaining - sum(n for state, n in ahead.items() if state not in at_hand)
        part = free // (len(running) + 1) if free >= _FEW * (len(running) + 1) else 0
        self._slept = {}
        for state in states:
            if state in at_hand:
                share = max(free - part * len(running), 1)
            else:
                share = ahead[state] + (part if state in running else 0)
            state.granted = share
            state.budget.set(SHARE, share - ahead[state])
            if state.thread.tid in self._asleep:
                self._slept[state.thread.tid] = self._total_at(state)

    def _total_at(self, state: TranslatedThread) -> int:
        """All instructions that a thread which stands still has executed."""
        counts = self.raw_counts(state.tally).at(self.position(state.tally))
        return counts.instructions(state.space.lengths())

    def _resynchronise(self, state: TranslatedThread) -> None:
        super()._resynchronise(state)
        before = self._slept.pop(state.thread.tid, None)
        if before is not None and self._is_metered(state):
            own = state.granted - (self._total_at(state) - before)
            state.budget.set(SHARE, own - _ahead(self.position(state.tally)))

    def _collect_shares(self) -> None:
        """See what threads have executed of their shares."""
        for state in self._metered():
            own = state.budget.left(SHARE) + _ahead(self.position(state.tally))
            self._remaining -= state.granted - own
            state.granted = own

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
            if not self._backend.catch_up(registers, state.words, thread.read):
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
        if state.budget.left(SHARE) + _ahead(position) <= 0:
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
            and self._is_metered(state)
            and state.budget.left(SHARE) + _ahead(position) <= 0
        ):
            self._share_spent(state, position)  # it leaves the block before it would have said so
        super()._uncount(state, block, count, counted=counted)

    @property
    def metered_left(self) -> int:
        return self._remaining

    def _share_spent(self, state: TranslatedThread, position: Position) -> None:
        region = self.region
        assert region is not None
        while region.metering:
            state.asking = position
            with self.halted():
                self._collect_shares()
                if self._remaining > 0:
                    self._share_out()
                    break
                moved = self._take_back(state, -self._remaining)
                region.spent()
            for other, where in moved:
                other.asking = where
            if region.metering and state.budget.left(SHARE) + _ahead(position) > 0:
                break
        state.asking = None

    def _take_back(
        self, state: TranslatedThread, over: int
    ) -> list[tuple[TranslatedThread, Position | None]]:
        """Let the threads be where they were `over` instructions ago. Returns those that were moved, and
        where they had said to be."""
        moved: list[tuple[TranslatedThread, Position | None]] = []
        for other in (state, *(s for s in self._metered() if s is not state)):
            where = self.position(other.tally)
            less = min(over, where.executed, self._counted(other))
            if less:
                moved.append((other, other.asking))
                other.asking = where._replace(executed=where.executed - less)
            over -= less
        if over and self.region is not None:
            self.region.late(over)
        return moved

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
        position = super().position(tally)
        state = self._state_of(tally)
        if state is not None and state.repeating and state.asking is None:
            left = self.isa.rep_count(state.repeating, state.thread.registers())
            position = position._replace(iterations=left)
        return position
