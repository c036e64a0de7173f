"""What an engine that records has: the blocks of each image, a stream for each thread, and the sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import ImageRecord
from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.stream.filtering import Filter, Repeats
from livepro.isa.base import Isa
from livepro.linux.proc import Mapping
from livepro.tracee import TracedThread

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


class Executed(NamedTuple):
    """How often a thread has executed blocks, each known by its address and its bytes: whole `times` (int64);
    and of `partial` (which one, k, times) the first k instructions, and no more."""

    addresses: Sequence[int]
    codes: Sequence[bytes]
    sizes: Sequence[bytes]
    """Of the instructions of each, in bytes."""
    times: Numbers
    partial: Sequence[tuple[int, int, int]]


class StreamImage:
    """One process image that is recorded, `number` in order of start. `mappings` are those that it had when
    the first words of a thread of it were delivered: who takes them in may come to it after its end."""

    def __init__(self, number: int, record: ImageRecord, isa: Isa, *, addresses: bool = True) -> None:
        self.number = number
        self.process = record.process
        self.blocks = StreamBlocks(isa, addresses=addresses)
        self.mappings: Sequence[Mapping] = ()


class StreamThread:
    """One thread that is recorded: `number` counts those of the run, from 0."""

    def __init__(self, number: int, thread: TracedThread, image: StreamImage, record: ImageRecord) -> None:
        self.number = number
        self.record = record
        self.thread = thread
        self.image = image


class Sink(Protocol):
    """Who takes what is recorded. Called from the engine's thread; may make it wait."""

    def begin(self, thread: StreamThread) -> None:
        """A thread begins."""

    def chunk(self, thread: StreamThread, words: Words) -> None:
        """The next words of a thread's stream: whole records. `words` are the sink's to keep."""

    def end(self, thread: StreamThread) -> None:
        """A thread has ended, or is not recorded any longer."""

    def executed(self, thread: StreamThread, blocks: Executed) -> None:
        """What a thread that has ended has executed, if its stream does not say it: if that was filtered."""

    def so_far(self, thread: StreamThread, blocks: Executed) -> None:
        """What such a thread has executed so far, which is to be told apart from what comes."""


_ALL_CHUNKS = 4 << 20
"""Words of the chunks of all threads together, about, each of which has two: many threads have smaller
ones."""
_LEAST_CHUNK = 1 << 13


class Recorder:
    """The streams of a run, with `addresses` or without. `chunk_words` is about how many words a thread
    collects before the sink is given them, at most; `turn` the same while there are several threads (0: no
    other)."""

    def __init__(
        self, sink: Sink, *, addresses: bool = True, chunk_words: int = 1 << 16, turn: int = 0
    ) -> None:
        self.sink = sink
        self.filter: Filter | Repeats | None = None
        """What lets events through (None: all of them). To be set before anything runs."""
        self.divide: Callable[[], None] = lambda: None
        """Has what filtered threads have done so far told apart from what comes (`so_far`), while all are
        halted: the engine's part."""
        self.addresses = addresses
        self.chunk_words = chunk_words
        self._turn = min(turn or chunk_words, chunk_words)
        self.words = 0
        self.chunks = 0
        self._running = 0
        self._images: dict[ImageRecord, StreamImage] = {}
        self.threads: list[StreamThread] = []

    def image(self, record: ImageRecord, isa: Isa) -> StreamImage:
        """The stream's view of an image."""
        found = self._images.get(record)
        if found is None:
            found = self._images[record] = StreamImage(
                len(self._images), record, isa, addresses=self.addresses
            )
        return found

    @property
    def images(self) -> list[StreamImage]:
        """All images, in order of start."""
        return list(self._images.values())

    def thread(self, thread: TracedThread, record: ImageRecord, isa: Isa) -> StreamThread:
        """A thread begins."""
        found = StreamThread(len(self.threads), thread, self.image(record, isa), record)
        self.threads.append(found)
        self._running += 1
        self.sink.begin(found)
        return found

    @property
    def share(self) -> int:
        """How many words a thread that begins to collect some collects."""
        if self._running < 2:
            return self.chunk_words
        return min(self._turn, max(_LEAST_CHUNK, _ALL_CHUNKS // self._running))

    def end(self, thread: StreamThread) -> None:
        """A thread has ended, or is let go: all of it has been delivered."""
        self._running -= 1
        self.sink.end(thread)

    def executed(self, thread: StreamThread, blocks: Executed) -> None:
        """Tell the sink what a thread whose stream is filtered has executed."""
        self.sink.executed(thread, blocks)

    def so_far(self, thread: StreamThread, blocks: Executed) -> None:
        """Tell the sink what it has executed, behind what has been delivered of it."""
        self.sink.so_far(thread, blocks)

    def deliver(self, thread: StreamThread, words: Words) -> None:
        """Give the sink the next whole records of a thread."""
        if len(words):
            self.words += len(words)
            self.chunks += 1
            image = thread.image
            if not image.mappings and image.process is not None:
                image.mappings = image.process.space.mappings
            self.sink.chunk(thread, words)
