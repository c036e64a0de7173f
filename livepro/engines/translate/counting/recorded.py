"""The event stream of a translated thread: its records are in its area until a chunk is full.

The last record there may be of a block that the thread is still in. When it leaves that before its
end, the tracer shortens the record (`left`); what was executed outside of copies it writes itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from livepro.engines.stream import GOES_ON, INTERRUPTED, PARTIAL, head
from livepro.engines.stream.blocks import StreamBlock, StreamBlocks
from livepro.engines.stream.recorder import Recorder, StreamThread
from livepro.engines.stream.stepping import StoppedMachine
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.counting.chunk import Chunk
from livepro.engines.translate.translator.backend import Words
from livepro.engines.window import Counts
from livepro.isa.access import Access, Pattern
from livepro.isa.base import Isa


class TranslateTrace:
    """Begins, completes and empties the records in a thread's area (`words`)."""

    def __init__(
        self, recorder: Recorder, stream: StreamThread, blocks: StreamBlocks, words: Words, isa: Isa
    ) -> None:
        self._chunk = Chunk(recorder, stream, words)
        self._thread = stream.thread
        self._blocks = blocks
        self._isa = isa
        self._recorded: bool | None = None
        self._repeating: Any = None
        self._stepped: tuple[Fragment, int, list[tuple[Access, list[int]]]] | None = None

    def _of(self, block: Fragment) -> StreamBlock:
        source = block.source
        flows = [facts.flow for facts in source.facts]
        return self._blocks.block(source.pc, source.code, source.steps(), flows, source.target)

    def _append(self, words: list[int]) -> None:
        if not self._chunk.room(len(words)):
            self._chunk.deliver()
        self._chunk.append(words)

    # -- what the engine tells

    def full(self, block: Fragment | None) -> None:
        """The chunk is full; the thread is at the start of `block`, whose record has been begun. What is in
        the chunk is given away when it has gone on (`gone_on`)."""
        assert block is not None
        self._chunk.turn(self._chunk.end - 1 - self._of(block).words(len(block.source.facts)))

    def gone_on(self) -> None:
        """The thread goes on whose chunk was full."""
        self._chunk.hand_over()

    def exits_at(self, block: Fragment, pc: int) -> None:
        """The thread ends in the copy of `block`, maybe between its record and its counter."""
        self._recorded = pc - block.start >= block.details.recorded

    def interrupted(self, registers: Any) -> None:
        """The thread leaves a block at a repeated instruction, with these registers."""
        self._repeating = registers

    def stepping(self, block: Fragment, index: int, registers: Callable[[], Any]) -> None:
        """The tracer is about to step instruction `index` of a block at its own place."""
        accesses = self._of(block).accesses[index]
        self._stepped = None
        if accesses:
            machine = StoppedMachine(self._thread, registers(), self._isa.vector_registers)
            found = [(access, self._isa.access_words(access, machine)) for access in accesses]
            self._stepped = (block, index, found)

    def stepped(self, registers: Callable[[], Any], *, recorded: bool) -> None:
        """That instruction has been executed, with these registers behind it. If its block is `recorded`
        its words are put there."""
        if self._stepped is None or not recorded:
            return
        block, index, _ = self._stepped
        known = self._of(block)
        words = self._step_words(registers())
        self._chunk.put(self._chunk.end - known.words(len(known.accesses)) + known.words(index), words)
        self._stepped = None

    def _step_words(self, registers: Any) -> list[int]:
        assert self._stepped is not None
        out: list[int] = []
        for access, words in self._stepped[2]:
            out += self._isa.access_words_after(access, words, registers)
        return out

    def left(self, block: Fragment, count: int, registers: Callable[[], Any], *, recorded: bool) -> None:
        """The thread left `block` after its first `count` instructions. `recorded` says whether it has
        a record."""
        if self._recorded is not None:
            recorded, self._recorded = self._recorded, None
        repeating, self._repeating = self._repeating, None
        stepped, self._stepped = self._stepped, None
        known = self._of(block)
        length = len(known.accesses)
        words: list[int] = []
        if recorded:
            if stepped is not None and stepped[1] < count:  # stepped, and then a signal
                self._stepped = stepped
                self.stepped(registers, recorded=True)
                stepped = None
            if count == length:
                return
            chunk = self._chunk
            at = chunk.end - known.words(length)
            chunk.end = at - 1
            words = chunk.part(at, at + known.words(count))
            if repeating is not None and known.accesses[count]:
                first = chunk.part(at + len(words), at + known.words(count + 1))
                found, place = [], 0
                for access in known.accesses[count]:
                    found.append((access, first[place : place + access.words]))
                    place += access.words
                stepped = (block, count, found)
        elif count and stepped is not None and stepped[1] == count - 1:
            self._stepped = stepped
            words = self._step_words(registers())
            self._stepped = stepped = None
        elif count:
            words = [0] * known.words(count)
        if stepped is not None and stepped[1] == count and stepped[2][0][0].pattern is Pattern.STRING:
            self._stepped = stepped
            more = self._step_words(registers() if repeating is None else repeating)
            self._stepped = None
            if more[0] != more[1]:
                self._append([head(known.number, PARTIAL | INTERRUPTED, count), *words, *more])
                return
        if count == length:
            self._append([known.number, *words])
        elif count:
            self._append([head(known.number, PARTIAL, count), *words])

    def goes_on(self, pc: int) -> None:
        """What has been executed leads to `pc`, but a signal handler comes first, or the thread is let go
        there."""
        self._append([head(0, GOES_ON), pc])

    def end(self) -> None:
        """The thread has ended, or is let go: all its records are whole."""
        self._chunk.close()

    def executed(self, counts: Counts) -> None:
        """All that the thread has executed: its records say it, too."""
