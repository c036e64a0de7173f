"""The filtered event stream of a translated thread (`livepro.engines.stream.filtering`).

The thread writes entries into its area as it executes; the tracer adds those of instructions that it has
executed elsewhere, and takes back those of one that did not retire. How often blocks were executed the
thread's counters say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from livepro.engines.stream.blocks import StreamBlock, StreamBlocks
from livepro.engines.stream.filtering import ENTRY, FETCH, NO_CODE, PLACE_SHIFT, TAG_SHIFT, Filter
from livepro.engines.stream.recorder import Recorder, StreamThread
from livepro.engines.stream.stepping import StoppedMachine
from livepro.engines.translate import layout
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.counting.chunk import Chunk
from livepro.engines.translate.counting.executions import executions
from livepro.engines.translate.translator.backend import Words
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.window import Counts
from livepro.isa.access import ALL_64, Access, Pattern
from livepro.isa.base import Isa

_NUMBER = (1 << PLACE_SHIFT) - 1
_TAG = (1 << 64 - TAG_SHIFT) - 1

Stepped = list[tuple[Access, list[int]]]


class FilteredTrace:
    """Begins, completes and empties the entries in a thread's area (`words`); `space` has its fragments.

    See `TranslateTrace`, in whose place it is."""

    def __init__(
        self,
        recorder: Recorder,
        stream: StreamThread,
        blocks: StreamBlocks,
        words: Words,
        isa: Isa,
        space: CodeCache,
        filter: Filter,
    ) -> None:
        self._recorder = recorder
        self._stream = stream
        self._chunk = Chunk(recorder, stream, words)
        self._blocks = blocks
        self._words = words
        self._isa = isa
        self._space = space
        self._filter = filter
        self._repeating: Any = None
        self._stepped: tuple[StreamBlock, int, Stepped] | None = None
        entries, at = space.emitter.entries, space.memory.entries.start
        assert entries is not None
        for where, start in zip(layout.RECORDERS, entries.starts, strict=True):
            words[where // 8] = at + start
        words[layout.ENTRY_LINES // 8] = filter.data.line | filter.data.slots << 32
        self._forget()

    def _of(self, block: Fragment) -> StreamBlock:
        source = block.source
        flows = [facts.flow for facts in source.facts]
        return self._blocks.block(source.pc, source.code, source.steps(), flows, source.target)

    def _forget(self) -> None:
        """Nothing is known of the lines accessed last: what is accessed next is an entry."""
        code = self._filter.code
        entries = self._space.emitter.entries
        assert entries is not None
        entries.forget(self._words)
        first = layout.CODE_LINES // 8
        self._words[first : first + code.slots * code.line // 8 : code.line // 8] = NO_CODE

    def _append(self, number: int, place: int, value: int = 0) -> None:
        if not self._chunk.room(ENTRY):
            self._empty()
        self._chunk.append((number | place << PLACE_SHIFT, value & ALL_64))

    def _empty(self) -> None:
        """Give the sink all entries. Others may have a turn before the next ones: they may access these
        caches."""
        self._chunk.deliver()
        self._forget()

    # -- what the engine tells

    def full(self, block: Fragment | None) -> None:
        """The chunk is full."""
        self._empty()

    def exits_at(self, block: Fragment, pc: int) -> None:
        """The thread ends in the copy of `block`."""

    def interrupted(self, registers: Any) -> None:
        """The thread leaves a block at a repeated instruction, with these registers."""
        self._repeating = registers

    def stepping(self, block: Fragment, index: int, registers: Callable[[], Any]) -> None:
        """The tracer is about to step instruction `index` of a block at its own place."""
        known = self._of(block)
        self._stepped = None
        if not block.size:  # which fetched nothing in the cache
            self._append(known.number, FETCH | index)
            self._forget()
        accesses = known.accesses[index]
        if accesses:
            machine = StoppedMachine(self._stream.thread, registers(), self._isa.vector_registers)
            found = [(access, self._isa.access_words(access, machine)) for access in accesses]
            self._stepped = known, index, found

    def stepped(self, registers: Callable[[], Any], *, recorded: bool) -> None:
        """That instruction has been executed, with these registers behind it."""
        if self._stepped is not None:
            known, index, found = self._stepped
            self._stepped = None
            self._put(known, index, found, registers())

    def _put(self, known: StreamBlock, index: int, found: Stepped, registers: Any) -> None:
        """Add the words of an instruction that has been stepped."""
        word = 1 + known.words(index)
        for access, words in found:
            for value in self._isa.access_words_after(access, words, registers):
                self._append(known.number, word, value)
                word += 1
        self._forget()

    def left(self, block: Fragment, count: int, registers: Callable[[], Any], *, recorded: bool) -> None:
        """The thread left `block` after its first `count` instructions. `recorded` says whether its counter
        says that it has executed all."""
        repeating, self._repeating = self._repeating, None
        stepped, self._stepped = self._stepped, None
        known = self._of(block)
        if stepped is not None and stepped[0].number == known.number:
            if stepped[1] < count:  # stepped, and then a signal
                self._put(*stepped, registers())
                return
            if stepped[1] == count and stepped[2][0][0].pattern is Pattern.STRING:
                self._put(*stepped, registers() if repeating is None else repeating)
                return
        if repeating is not None and block.size and self._repeat(known, count, repeating):
            return
        self._take_back(block, known, count, counted=recorded)

    def _repeat(self, known: StreamBlock, index: int, registers: Any) -> bool:
        """Complete the words of a repeated instruction that was interrupted: those of where it began are
        there, in front of all else."""
        accesses = known.accesses[index]
        if not accesses or accesses[0].pattern is not Pattern.STRING:
            return False
        word, chunk = 1 + known.words(index), self._chunk
        begun = chunk.end - len(accesses) * ENTRY
        for n, access in enumerate(accesses):
            if begun < chunk.begin or int(self._words[begun + n * ENTRY]) != (
                known.number | word + n * access.words << PLACE_SHIFT
            ):
                return False
        for n, access in enumerate(accesses):
            first = int(self._words[begun + n * ENTRY + 1])
            behind = self._isa.access_words_after(access, [first, 0], registers)[1]
            self._append(known.number, word + n * access.words + 1, behind)
        self._forget()
        return True

    def _take_back(self, block: Fragment, known: StreamBlock, count: int, *, counted: bool) -> None:
        """Take back the entries of instruction `count`, which has not retired."""
        told = self._execution(block)
        if told is None or count == len(known.accesses):
            return
        execution = told + (not counted) & _TAG
        first, chunk = 1 + known.words(count), self._chunk
        end = chunk.end
        while end - ENTRY >= chunk.begin:
            head, value = int(self._words[end - ENTRY]), int(self._words[end - ENTRY + 1])
            place = head >> PLACE_SHIFT
            mine = place == FETCH | count or (not place & FETCH and place >= first)
            if head & _NUMBER != known.number or not mine or value >> TAG_SHIFT != execution:
                break
            end -= ENTRY
        if end != chunk.end:
            chunk.end = end
            self._forget()

    def _execution(self, block: Fragment) -> int | None:
        """What the counter of a fragment says; None if it has none, being none, or the comparison of one with
        its source."""
        details = block.details
        offset = next((at for kind, at in details.fields if kind is Field.CELL), None)
        if offset is None:
            return None
        cell = int.from_bytes(details.code[offset : offset + 4], "little")
        return int(self._words[cell // 8])

    def goes_on(self, pc: int) -> None:
        """What has been executed leads to `pc`."""

    def end(self) -> None:
        """The thread has ended, or is let go: all its entries are there."""
        self._chunk.close()

    def executed(self, counts: Counts) -> None:
        """All that the thread has executed, by the slots of its blocks."""
        self._recorder.executed(self._stream, executions(self._space, counts))
