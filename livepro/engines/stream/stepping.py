"""The step engine's recorder: the reference. Addresses come from the registers at each stop."""

from __future__ import annotations

import ctypes
from operator import sub
from typing import Any

import numpy as np

from livepro.engines.stream import GOES_ON, INTERRUPTED, PARTIAL, head
from livepro.engines.stream.blocks import StreamBlock
from livepro.engines.stream.recorder import Recorder, StreamThread
from livepro.isa.access import Access, Pattern
from livepro.isa.base import CodeBlock, Isa, Quirk
from livepro.linux import ptrace
from livepro.tracee import TracedThread

_VECTORS = 16384  # bytes of a buffer for vector registers: more than any machine has


class StoppedMachine:
    """A stopped thread as `isa.access.MachineState`."""

    def __init__(self, thread: TracedThread, general: Any, kind: int) -> None:
        self._thread = thread
        self._kind = kind
        self.general = general

    def vectors(self) -> bytes:
        buffer = ctypes.create_string_buffer(_VECTORS)
        size = ptrace.get_regset(self._thread.tid, self._kind, buffer)
        return buffer.raw[:size]

    def read(self, address: int, size: int) -> bytes:
        return bytes(self._thread.process.memory.read(address, size))


class StepTrace:
    """The stream of one stepped thread. The engine tells what the thread is about to attempt, what
    has retired, and when it leaves a block."""

    def __init__(self, recorder: Recorder, stream: StreamThread, isa: Isa) -> None:
        self._recorder = recorder
        self._stream = stream
        self._isa = isa
        self._words: list[int] = []
        self._block: StreamBlock | None = None
        self._current: list[int] = []
        self._ends: list[int] = []
        self._pending: tuple[int, list[tuple[Access, list[int]]]] = (-1, [])
        self._before: StoppedMachine | None = None

    def attempt(self, code: CodeBlock, index: int) -> None:
        """The thread is about to execute instruction `index` of a block."""
        if index == 0 or self._block is None:
            bounds = code.addresses
            self._block = self._stream.image.blocks.block(
                code.address, code.code, bytes(map(sub, bounds[1:], bounds)), code.flows, code.target or 0
            )
            self._current, self._ends = [], []
        accesses = self._block.accesses[index]
        self._pending = (index, [])
        self._before = None
        if accesses or code.quirks[index] is Quirk.SHADOW:  # with that, the next one is executed, too
            thread = self._stream.thread
            self._before = StoppedMachine(thread, thread.registers(), self._isa.vector_registers)
            self._pending = (index, self._evaluate(accesses))

    def _evaluate(self, accesses: tuple[Access, ...]) -> list[tuple[Access, list[int]]]:
        assert self._before is not None
        return [(access, self._isa.access_words(access, self._before)) for access in accesses]

    def _after(self, index: int, general: Any) -> list[int]:
        """The words of instruction `index`, with the registers behind it where that matters."""
        assert self._block is not None
        pending = self._pending
        if pending[0] != index:  # executed in one step with the one before
            if not self._block.accesses[index]:
                return []
            thread = self._stream.thread
            if self._before is None:
                self._before = StoppedMachine(thread, thread.registers(), self._isa.vector_registers)
            pending = index, self._evaluate(self._block.accesses[index])
        out = []
        for access, words in pending[1]:
            if access.pattern is Pattern.STRING:
                if general is None:
                    general = self._stream.thread.registers()
                words = self._isa.access_words_after(access, words, general)
            out += words
        return out

    def retired(self, index: int) -> None:
        """Instruction `index` of the block has been executed."""
        if self._block is None:
            return
        self._current += self._after(index, None)
        self._ends.append(len(self._current))
        self._pending = (-1, [])

    def complete(self) -> None:
        """The thread has executed the block as a whole."""
        if self._block is None:
            return
        while len(self._ends) < len(self._block.accesses):  # executed in one step with those before
            self.retired(len(self._ends))
        self._put(self._block.number, self._current)

    def leave(self, count: int, general: Any) -> None:
        """The thread goes elsewhere after the block's first `count` instructions; `general` are the
        registers when it last stopped in the midst of a repeated instruction (None: it did not)."""
        block = self._block
        if block is None:
            return
        while len(self._ends) < count:  # a system call that has been entered
            self.retired(len(self._ends))
        words = self._current[: self._ends[count - 1]] if count else []
        index, pending = self._pending
        if index == count and general is not None and any(a.pattern is Pattern.STRING for a, _ in pending):
            more = self._after(index, general)
            if more[0] != more[1]:
                self._put(head(block.number, PARTIAL | INTERRUPTED, count), words + more)
                return
        if count == len(block.accesses):
            self._put(block.number, words)
        elif count:
            self._put(head(block.number, PARTIAL, count), words)

    def goes_on(self, pc: int) -> None:
        """What has been executed so far leads to `pc`, but a signal handler comes first, or the thread is let
        go there."""
        self._words += (head(0, GOES_ON), pc)
        self._block = None

    def _put(self, first: int, words: list[int]) -> None:
        self._block = None
        self._pending = (-1, [])
        self._words.append(first)
        self._words += words
        if len(self._words) >= self._recorder.share:
            self.flush()

    def flush(self) -> None:
        """Give the sink what has been recorded."""
        words, self._words = self._words, []
        self._recorder.deliver(self._stream, np.array(words, np.uint64))

    def end(self) -> None:
        """The thread has ended."""
        self.flush()
        self._recorder.end(self._stream)
