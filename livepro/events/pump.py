"""Between the engine and the analyses: chunks wait in a bounded queue for a thread that consumes them.

If the queue is full the engine waits, and with it the program: nothing is lost. An analysis that
raises has the program let go, and the error is told when the run is over.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread, Words
from livepro.errors import LiveproError
from livepro.events.kernels import Kernel
from livepro.events.program import Program
from livepro.model import ProcessResult

DEFAULT_MEMORY = 64 << 20
"""Bytes of chunks that may wait."""


class Consumer(Protocol):
    """What sees the streams of a run, chunk by chunk, in the pump's thread."""

    @property
    def name(self) -> str:
        """What it is called."""

    def see(self, thread: StreamThread, words: np.ndarray[Any, Any], tables: StaticTables) -> None:
        """The next whole records (int64) of a thread, and the tables as they were then."""

    def told(self, image: StreamImage, process: ProcessResult) -> tuple[Any, list[str]] | None:
        """What it tells of an image once all is over, and the lines that a summary shows of that; None
        if it has seen nothing of it."""


@runtime_checkable
class Regional(Protocol):
    """A consumer that keeps to a region of the run."""

    def waits(self) -> None:
        """Counting has not begun when the run does."""

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """Counting begins or ends where each thread has executed so many instructions; a thread that is not
        among `positions` starts later. `goes` has where threads go on, as far as that is known."""


class States:
    """One kernel's states: of each thread, or of each image if its analysis shares them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.name = kernel.name
        self._of: dict[object, list[np.ndarray[Any, Any]]] = {}
        self._last: dict[int, np.ndarray[Any, Any]] = {}

    def see(self, thread: StreamThread, words: np.ndarray[Any, Any], tables: StaticTables) -> None:
        """See `Consumer`."""
        key: object = thread.image if self._kernel.analysis.shared else thread
        state = self._of.get(key)
        if state is None:
            state = self._of[key] = self._kernel.state()
        self._kernel.grow(state, len(tables.address))
        last = self._last.get(thread.number)
        if last is None:
            last = self._last[thread.number] = np.full(1, -1, np.int64)
        self._kernel.consume(words, thread.number, tables, last, state)

    def told(self, image: StreamImage, process: ProcessResult) -> tuple[Any, list[str]] | None:
        """See `Consumer`."""
        state = self._merged(image)
        if state is None:
            return None
        result = self._kernel.analysis.result(state, Program(image, process))
        return result, list(self._kernel.analysis.report(result))

    def _merged(self, image: StreamImage) -> SimpleNamespace | None:
        """The state of all threads of an image; None if it has none."""
        out: SimpleNamespace | None = None
        for key, arrays in self._of.items():
            if (key.image if isinstance(key, StreamThread) else key) is image:
                self._kernel.grow(arrays, len(image.blocks.tables().address))
                state = SimpleNamespace(**dict(zip(self._kernel.names, arrays, strict=True)))
                if out is None:
                    out = state
                else:
                    self._kernel.analysis.merge(out, state)
        return out


class Pump:
    """The sink of a run's streams (`livepro.engines.stream.recorder.Sink`), for some consumers."""

    def __init__(
        self, consumers: Sequence[Consumer], memory: int = DEFAULT_MEMORY, chunk_words: int = 1 << 16
    ) -> None:
        self._consumers = tuple(consumers)
        self.abandon: Callable[[], None] = lambda: None
        """Has the program let go."""
        self.waited = 0.0
        self.busy = 0.0
        self._queue: queue.Queue[tuple[StreamThread, Words, StaticTables] | Callable[[], None] | None] = (
            queue.Queue(max(2, memory // (chunk_words * 8)))
        )
        self._failure: tuple[Consumer, Exception] | None = None
        self._worker = threading.Thread(target=self._work, name="livepro events", daemon=True)
        self._worker.start()

    # -- from the engine's thread

    def begin(self, thread: StreamThread) -> None:
        """See `Sink`."""

    def chunk(self, thread: StreamThread, words: Words) -> None:
        """See `Sink`."""
        if self._failure is None:
            began = time.perf_counter()
            self._queue.put((thread, words, thread.image.blocks.tables()))
            self.waited += time.perf_counter() - began

    def end(self, thread: StreamThread) -> None:
        """See `Sink`."""

    @property
    def regional(self) -> bool:
        """Whether all consumers keep to a region (`Regional`)."""
        return all(isinstance(consumer, Regional) for consumer in self._consumers)

    def waits(self) -> None:
        """Tell the consumers, before anything runs, that counting has not begun."""
        for consumer in self._consumers:
            if isinstance(consumer, Regional):
                consumer.waits()

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """Tell the consumers, behind all chunks so far, that counting begins or ends."""

        def tell() -> None:
            for consumer in self._consumers:
                if isinstance(consumer, Regional):
                    consumer.bound(positions, goes, begins=begins)

        self._queue.put(tell)

    # -- its own

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if callable(item):
                item()
            elif self._failure is None:
                thread, words, tables = item
                began = time.perf_counter()
                for consumer in self._consumers:
                    try:
                        consumer.see(thread, words.view(np.int64), tables)
                    except Exception as error:
                        self._failure = (consumer, error)
                        self.abandon()
                        break
                self.busy += time.perf_counter() - began

    def close(self) -> None:
        """Wait until all has been consumed."""
        self._queue.put(None)
        self._worker.join()

    def check(self) -> None:
        """Raises LiveproError if an analysis has failed: its own, where it told what is wrong."""
        if self._failure is not None:
            consumer, error = self._failure
            if isinstance(error, LiveproError):
                raise error
            raise LiveproError(
                f"The analysis {consumer.name} failed ({type(error).__name__}: {error}); the program went on "
                "without it."
            )

    def results(
        self, images: Sequence[StreamImage], processes: Sequence[ProcessResult]
    ) -> dict[str, list[Any]]:
        """What each analysis tells of each process image that ran anything, by its name: the `pid`, `image`,
        `command`, `result` and `report` (lines)."""
        known = {(process.pid, process.image): process for process in processes}
        out: dict[str, list[Any]] = {consumer.name: [] for consumer in self._consumers}
        for image in images:
            process = known.get((image.process.pid, image.process.image))
            if process is None:
                continue
            for consumer in self._consumers:
                try:
                    told = consumer.told(image, process)
                except Exception as error:
                    raise LiveproError(
                        f"The result of {consumer.name} cannot be told ({type(error).__name__}: {error})."
                    ) from error
                if told is None:
                    continue
                out[consumer.name].append(
                    {
                        "pid": process.pid,
                        "image": process.image,
                        "command": list(process.command),
                        "result": told[0],
                        "report": told[1],
                    }
                )
        return out
