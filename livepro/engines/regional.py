"""Regions of interest under engines that see every block: where threads stop for a region.

Counting down: a block may be begun as ever as long as what all threads may execute before
they are asked again is not more than is left. Else it is stepped, and after each
instruction it is known how much is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from livepro.engines.base import Engine, EngineOptions
from livepro.engines.code import Readable, cut_at, read_block
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.region import Arrival, Phase
from livepro.engines.stepping import NEVER, StepThread
from livepro.engines.window import Position
from livepro.isa.base import CodeBlock, Isa
from livepro.tracee import TracedProcess, TracedThread


class Regional(Engine):
    """The part of the step engine that keeps to a region."""

    _states: dict[int, StepThread]

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        region = options.region
        # To the next change, less what threads have executed in blocks that they have completed.
        self._left = 0 if region is None or region.start is not None else region.skip or region.count

    def _enrolled(self, thread: TracedThread, record: ImageRecord) -> ThreadTally:
        """The tally of a thread that is about to execute its first instruction."""
        region = self.options.region
        metered = region is not None and region.metered and thread.process.wanted
        spend = self.spend if metered else None
        tally = ThreadTally(thread, record.store, self.options.cut, spend)
        self.control.enrol(record, tally)
        return tally

    def _read_block(self, process: TracedProcess, memory: Readable, pc: int) -> CodeBlock:
        """The block at `pc`, up to where a region may begin or end."""
        code = read_block(self.isa, memory, pc)
        if self.region is None:
            return code
        return cut_at(code, self.region.places(process, process.space.find(pc)))

    def _region_at(self, state: StepThread, pc: int) -> bool:
        """Whether a region may begin or end at `pc`."""
        process = state.thread.process
        return self.region is not None and pc in self.region.places(process, process.space.find(pc))

    def _plain(self, state: StepThread, pc: int) -> bool:
        """Whether nobody need know that a thread gets to `pc`."""
        region = self.region
        return region is None or not (region.region.metered or self._region_at(state, pc))

    def spend(self, instructions: int) -> None:
        """So many more have been counted."""
        self._left -= instructions

    def rearm(self) -> None:
        pass  # each arrival is looked at

    @contextmanager
    def passing(self, arrived: Mapping[int, Arrival]) -> Iterator[None]:
        standing = [s for s in self._measured() if s.asking is None and self._stands(s, arrived)]
        for state in standing:
            state.asking = Position(state.block.row, 1, 0, len(state.block.code))
        try:
            yield
        finally:
            for state in standing:
                state.asking = None

    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]:
        return [tid for tid, last in arrived.items() if self._away(tid, last)]

    def _stands(self, state: StepThread, arrived: Mapping[int, Arrival]) -> bool:
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

    def meter(self, instructions: int) -> None:
        self._left = instructions + self._executed()
        for state in self._states.values():
            state.expected = NEVER  # it must ask anew

    @property
    def metered_left(self) -> int:
        return self._left

    def _about_to(self, state: StepThread) -> None:
        """A thread will execute instruction `index` next, by a step."""
        block, index = state.block, state.index
        if self.region is not None:
            self._at_region(state)
        if block.look[index]:
            state.before = state.thread.registers()
        if state.trace is not None:
            state.trace.attempt(block.code, index)
            state.expected = NEVER
            return
        state.expected = block.expect[index] if self._may_run(state, len(block.code)) else NEVER

    def _measured(self) -> list[StepThread]:
        return [state for state in self._states.values() if state.thread.process.wanted]

    def _executed(self) -> int:
        """Instructions of the blocks that threads are in."""
        return sum(state.position.executed for state in self._measured())

    def _ahead(self, state: StepThread) -> int:
        """Instructions that a thread may complete before it asks again."""
        return len(state.block.code)

    def _at_region(self, state: StepThread) -> None:
        """A thread stands before instruction `index` of its block."""
        region = self.region
        assert region is not None
        code, index = state.block.code, state.index
        here = Position(state.block.row, index, 0, len(code))
        if index == 0 and region.armed(state.thread.process, code.address):
            state.asking = here
            row, length = state.block.row, len(code)
            executions = state.tally.begun(row, length)
            region.arrived(state.thread, Arrival(code.address, row, length, executions))
            state.asking = None
        while region.metering and state.thread.process.wanted:
            state.asking = here
            over = self._executed() - self._left
            if over < 0:
                state.asking = None
                return
            self._take_back(state, over)
            region.spent()
            for other in self._states.values():
                other.asking = None

    def _take_back(self, state: StepThread, over: int) -> None:
        """Let the threads be where they were `over` instructions ago."""
        region = self.region
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

    def _may_run(self, state: StepThread, ahead: int) -> bool:
        """Whether a thread may execute so many instructions of its block, and those behind it,
        before it asks again."""
        if self.region is None or not self.region.metering or not state.thread.process.wanted:
            return True
        others = sum(self._ahead(other) for other in self._measured() if other is not state)
        return self._left >= others + ahead
