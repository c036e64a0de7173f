"""The stream of a translated thread of which only blocks with repeated instructions are recorded: counters
say how often all others were executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from livepro.engines.stream.recorder import Recorder, StreamThread
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.counting.executions import executions
from livepro.engines.translate.counting.recorded import TranslateTrace
from livepro.engines.translate.translator.backend import Records, Words
from livepro.engines.window import Counts
from livepro.isa.base import Isa


class RepeatedTrace:
    """Keeps the records of such blocks (see `TranslateTrace`); `space` has the thread's fragments."""

    def __init__(
        self,
        recorder: Recorder,
        stream: StreamThread,
        records: Records,
        words: Words,
        isa: Isa,
        space: CodeCache,
    ) -> None:
        self._trace = TranslateTrace(recorder, stream, records.blocks, words, isa)
        self._recorder = recorder
        self._stream = stream
        self._records = records
        self._space = space

    def _has(self, block: Fragment) -> bool:
        """Whether a block is one of those."""
        return self._records.wants(block.source)

    def full(self, block: Fragment | None) -> None:
        """The chunk is full."""
        self._trace.full(block)

    def gone_on(self) -> None:
        """The thread goes on whose chunk was full."""
        self._trace.gone_on()

    def exits_at(self, block: Fragment, pc: int) -> None:
        """The thread ends in the copy of `block`."""
        if self._has(block):
            self._trace.exits_at(block, pc)

    def interrupted(self, registers: Any) -> None:
        """The thread leaves a block at a repeated instruction, with these registers."""
        self._trace.interrupted(registers)

    def stepping(self, block: Fragment, index: int, registers: Callable[[], Any]) -> None:
        """The tracer is about to step instruction `index` of a block at its own place."""
        if self._has(block):
            self._trace.stepping(block, index, registers)

    def stepped(self, registers: Callable[[], Any], *, recorded: bool) -> None:
        """That instruction has been executed."""
        self._trace.stepped(registers, recorded=recorded)

    def left(self, block: Fragment, count: int, registers: Callable[[], Any], *, recorded: bool) -> None:
        """The thread left `block` after its first `count` instructions."""
        if self._has(block):
            self._trace.left(block, count, registers, recorded=recorded)

    def goes_on(self, pc: int) -> None:
        """What has been executed leads to `pc`: nobody asks where blocks lead."""

    def end(self) -> None:
        """The thread has ended, or is let go: all its records are whole."""
        self._trace.end()

    def executed(self, counts: Counts) -> None:
        """All that the thread has executed, by the slots of its blocks."""
        self._recorder.executed(self._stream, executions(self._space, counts))
