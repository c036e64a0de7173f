"""The filtered event stream of a translated thread (`livepro.engines.stream.filtering`).

The thread simulates its cache of data and writes entries into its area as it executes; the tracer adds those
of instructions that it has executed elsewhere, and takes back what one did that did not retire. How often
blocks were executed the thread's counters say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from livepro.engines.stream.blocks import StreamBlock, StreamBlocks
from livepro.engines.stream.filtering import (
    ENTRY,
    FETCH,
    NO_CODE,
    ORDER,
    PAGE,
    PAGE_SHIFT,
    PLACE_SHIFT,
    SPAN_SHIFT,
    TAG_SHIFT,
    WITHIN_SHIFT,
    Filter,
    word_of,
)
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
from livepro.tracee.process import TracedThread

_NUMBER = (1 << PLACE_SHIFT) - 1
_TAG = (1 << 64 - TAG_SHIFT) - 1

Stepped = list[tuple[Access, list[int]]]


class FilteredTrace:
    """Begins, completes and empties the entries in a thread's area (`words`, which is at an `address` of the
    program's); `space` has its fragments.

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
        address: int,
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
        self._entries = entries
        words[layout.ENTRY_CACHE // 8] = filter.data.packed
        code = layout.CODE_LINES // 8
        self._pages = words[code : code + layout.CODE_LINES_SIZE // 8].view(np.uint32)
        words[layout.ENTRY_STACK // 8] = address + layout.ENTRY_RETURN + 8
        self._begin()

    def _of(self, block: Fragment) -> StreamBlock:
        source = block.source
        flows = [facts.flow for facts in source.facts]
        return self._blocks.block(source.pc, source.code, source.steps(), flows, source.target)

    def _begin(self) -> None:
        """Nothing is in the thread's caches."""
        words = self._words
        words[layout.ENTRY_ORDER // 8] = words[layout.ENTRY_LOG // 8] = 0
        words[layout.LOG // 8 : (layout.LOG + layout.LOG_SIZE) // 8] = ALL_64
        self._entries.empty(words)
        self._pages[:] = NO_CODE

    def _append(self, number: int, place: int, value: int = 0) -> None:
        if not self._chunk.room(ENTRY):
            self._empty()
        self._chunk.append((number | place << PLACE_SHIFT, value & ALL_64))

    def _empty(self) -> None:
        """Give the sink all entries. Others may have a turn before the next ones: they may access these
        caches."""
        self._chunk.deliver(more=self._order())
        self._begin()

    def _order(self) -> Words:
        """The entry that tells which lines are in the cache of data."""
        begin, size = layout.DATA_LINES // 8, self._filter.data.words
        head = np.array((ORDER << PLACE_SHIFT, size), np.uint64)
        return np.concatenate((head, self._words[begin : begin + size]))

    def _look_away(self) -> None:
        """Words will be written of what nobody has looked at whether it misses."""
        if not self._chunk.room(ENTRY):
            self._empty()
        self._entries.order(self._words)
        self._entries.empty(self._words)

    # -- what the engine tells

    def full(self, block: Fragment | None) -> None:
        """The chunk is full."""
        self._empty()

    def gone_on(self) -> None:
        """The thread goes on whose chunk was full."""

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
            self._fetch(known, index)
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
        self._look_away()
        for access, words in found:
            for value in self._isa.access_words_after(access, words, registers):
                self._append(known.number, word, value)
                word += 1

    def _fetch(self, known: StreamBlock, index: int) -> None:
        """Tell that an instruction is fetched, as the thread does."""
        lines, sizes = self._filter.code, self._blocks.sizes[known.number]
        begin = known.address + sum(sizes[:index])
        ends = begin, begin + sizes[index] - 1
        found = {lines.number(at): at >> PAGE_SHIFT & 0xFFFFFFFF for at in ends}
        if any(self._pages[number] != page for number, page in found.items()):
            page, within = begin >> PAGE_SHIFT & 0xFFFFFFFF, begin % PAGE
            where = page | within << WITHIN_SHIFT | sizes[index] - 1 << SPAN_SHIFT
            self._append(known.number, FETCH | index, where)
            for number, page in found.items():
                self._pages[number] = page

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
        return True

    def _take_back(self, block: Fragment, known: StreamBlock, count: int, *, counted: bool) -> None:
        """Take back what instruction `count` did, which has not retired: its entries, and what it changed in
        the thread's caches."""
        told = self._execution(block)
        if told is None or count == len(known.accesses):
            return
        execution = told + (not counted) & _TAG
        first, chunk, words = 1 + known.words(count), self._chunk, self._words

        def own(at: int) -> bool:
            head = int(words[at])
            place = word_of(head >> PLACE_SHIFT)
            word = not place & (FETCH | ORDER) and place >= first
            return head & _NUMBER == known.number and (word or place == FETCH | count)

        def mine(at: int) -> bool:
            return own(at) and int(words[at + 1]) >> TAG_SHIFT == execution

        end, order = chunk.end, int(words[layout.ENTRY_ORDER // 8]) // 8
        behind = order + ENTRY + self._filter.data.words if order >= chunk.begin else chunk.begin
        if (
            chunk.begin <= order
            and behind < end
            and int(words[order + 1]) >> TAG_SHIFT == execution
            and all(own(at) for at in range(behind, end, ENTRY))
        ):
            # Its words, the lines of data, and what it fetched.
            end = behind
            while order - ENTRY >= chunk.begin and mine(order - ENTRY):
                words[order - ENTRY : end - ENTRY] = words[order:end].copy()
                order, end = order - ENTRY, end - ENTRY
            words[layout.ENTRY_ORDER // 8] = order * 8
        else:
            while end - ENTRY >= behind and mine(end - ENTRY):
                end -= ENTRY
        chunk.end = end
        self._pages[:] = NO_CODE  # which lines there were before is not known
        log = layout.LOG // 8
        for _ in range(layout.LOG_SIZE // layout.LOGGED):
            last = (int(words[layout.ENTRY_LOG // 8]) - layout.LOGGED) % layout.LOG_SIZE
            at = log + last // 8
            if not own(at) or int(words[at + 1]) & _TAG != execution:
                break
            self._entries.put_back(words, int(words[at + 2]), int(words[at + 3]))
            words[layout.ENTRY_LOG // 8], words[at] = last, ALL_64

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
        self._chunk.close(self._order())

    def divide(self, counts: Counts, pc: int, thread: TracedThread) -> None:
        """Tell what has been executed so far apart from what comes, by the slots of its blocks, and let the
        caches be empty. The thread stands still at `pc`."""
        memory = self._space.memory
        if pc in memory.entries:
            registers = thread.registers()
            self._entries.restart(registers, self._words, pc - memory.entries.start)
            thread.set_registers(registers)
        elif (place := memory.locate(pc)) is not None and place.block.is_cold(pc):
            self._write_anew(place.block, pc, thread)
        self._empty()
        self._recorder.so_far(self._stream, executions(self._space, counts))

    def _write_anew(self, block: Fragment, pc: int, thread: TracedThread) -> None:
        """If a thread is about to write an entry itself, bring it to where it has not begun to."""
        cold, offset = block.details.cold, pc - block.cold
        assert cold is not None
        for begin, end in cold.writes:
            if begin < offset < end:
                registers = thread.registers()
                self._entries.begin_anew(registers, self._words, offset - begin)
                thread.set_registers(registers)

    def executed(self, counts: Counts) -> None:
        """All that the thread has executed, by the slots of its blocks."""
        self._recorder.executed(self._stream, executions(self._space, counts))
