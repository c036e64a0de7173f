"""Regions of interest under engines that see every block: where threads stop for a region.

Counting down: a block may be begun as ever as long as what all threads may execute before
they are asked again is not more than is left. Else it is stepped, and after each
instruction it is known how much is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from livepro.engines.code import Readable, cut_at, read_block
from livepro.engines.region import Arrival, Phase, Region, RegionWatch
from livepro.engines.step.stepping import NEVER, StepThread
from livepro.engines.window import Position
from livepro.isa.base import CodeBlock, Isa
from livepro.tracee import TracedProcess


class RegionKeeper:
    """Begins and ends a region of interest (`region`; None: all counts) to the instruction.

    `states` are the threads by tid. `ahead` says how many instructions a thread may complete before it asks
    again. `left` are the instructions to the next change, less those of blocks that threads have completed.
    """

    def __init__(
        self,
        isa: Isa,
        region: RegionWatch | None,
        bounds: Region | None,
        states: Mapping[int, StepThread],
        ahead: Callable[[StepThread], int],
    ) -> None:
        self.left = 0 if bounds is None or bounds.start is not None else bounds.ahead
        self._isa = isa
        self._region = region
        self._metered = bounds is not None and bounds.metered
        self._states = states
        self._ahead = ahead

    # -- where it begins and ends

    def read_block(self, process: TracedProcess, memory: Readable, pc: int) -> CodeBlock:
        """The block at `pc`, up to where the region may begin or end."""
        code = read_block(self._isa, memory, pc)
        if self._region is None:
            return code
        return cut_at(code, self._region.places(process, process.space.find(pc)))

    def touches(self, state: StepThread, pc: int) -> bool:
        """Whether the region may begin or end at `pc`."""
        process = state.thread.process
        return self._region is not None and pc in self._region.places(process, process.space.find(pc))

    def ignores(self, state: StepThread, pc: int) -> bool:
        """Whether nobody need know that a thread gets to `pc`."""
        return self._region is None or not (self._metered or self.touches(state, pc))

    def arrive(self, state: StepThread) -> None:
        """A thread stands before instruction `index` of its block."""
        region = self._region
        if region is None:
            return
        code, index = state.block.code, state.index
        here = Position(state.block.row, index, 0, len(code))
        if index == 0 and region.armed(state.thread.process, code.address):
            state.asking = here
            row, length = state.block.row, len(code)
            executions = state.tally.begun(row, length)
            region.arrived(state.thread, Arrival(code.address, row, length, executions))
            state.asking = None
        if state.thread.process.wanted:
            self._change_if_due(region, state, here, 0)

    def passes(self, state: StepThread, row: int, executed: int, length: int) -> None:
        """A thread has executed the first `executed` of a block's `length` instructions and is about to
        have them counted: what was due on the way comes about first. (It may have run through the block, and
        another thread may have been stepped meanwhile.)"""
        region = self._region
        if region is not None and state.thread.process.wanted:
            # (What is due right behind them is due where the thread gets to.)
            self._change_if_due(region, state, Position(row, executed, 0, length), 1)

    def _change_if_due(self, region: RegionWatch, state: StepThread, here: Position, least: int) -> None:
        """Bring about what is due as long as what has been executed, with `state` at `here`, is at least
        `least` instructions over what was left."""
        while region.metering:
            state.asking = here
            over = self._executed() - self.left
            if over < least:
                state.asking = None
                return
            self._take_back(state, over)
            region.spent()
            for other in self._states.values():
                other.asking = None

    @contextmanager
    def passing(self, arrived: Mapping[int, Arrival]) -> Iterator[None]:
        """See `region.Bounded`."""
        standing = [s for s in self._measured() if s.asking is None and self._stands(s, arrived)]
        for state in standing:
            state.asking = Position(state.block.row, 1, 0, len(state.block.code))
        try:
            yield
        finally:
            for state in standing:
                state.asking = None

    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]:
        """See `region.Bounded`."""
        return [tid for tid, last in arrived.items() if self._away(tid, last)]

    @staticmethod
    def _stands(state: StepThread, arrived: Mapping[int, Arrival]) -> bool:
        """Whether a thread is still where it arrived last."""
        last = arrived.get(state.thread.tid)
        if last is None or state.index or state.position.executed or state.block.row != last.row:
            return False
        return state.tally.begun(last.row, last.length) == last.executions

    def _away(self, tid: int, last: Arrival) -> bool:
        state = self._states.get(tid)
        if state is None or state.asking is not None or state.block.code.address == last.pc:
            return False
        return state.tally.begun(last.row, last.length) == last.executions

    # -- counting down

    def metered(self, process: TracedProcess) -> bool:
        """Whether the instructions of a process's threads are counted down (`spend`)."""
        return self._metered and process.wanted

    def spend(self, instructions: int) -> None:
        """So many more have been counted."""
        self.left -= instructions

    def meter(self, instructions: int) -> None:
        """See `region.Bounded`."""
        self.left = instructions + self._executed()
        for state in self._states.values():
            state.expected = NEVER  # it must ask anew

    def may_run(self, state: StepThread, ahead: int) -> bool:
        """Whether a thread may execute so many instructions of its block, and those behind it,
        before it asks again."""
        if self._region is None or not self._region.metering or not state.thread.process.wanted:
            return True
        others = sum(self._ahead(other) for other in self._measured() if other is not state)
        return self.left >= others + ahead

    def _measured(self) -> list[StepThread]:
        return [state for state in self._states.values() if state.thread.process.wanted]

    def _executed(self) -> int:
        """Instructions of the blocks that threads are in."""
        return sum(state.position.executed for state in self._measured())

    def _take_back(self, state: StepThread, over: int) -> None:
        """Let the threads be where they were `over` instructions ago."""
        region = self._region
        assert region is not None
        for other in (state, *(s for s in self._measured() if s is not state)):
            where = other.position
            less = min(over, where.executed)
            if less and region.phase is Phase.COUNTING:  # not of what was executed before
                counted = other.tally.window.counted(other.tally.raw_counts().at(where))
                less = min(less, counted.instructions(other.tally.store.lengths))
            if less or other is state:
                other.asking = where._replace(executed=where.executed - less)
            over -= less
        if over:
            region.late(over)
