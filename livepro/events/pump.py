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
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.filtering import Filter, Repeats
from livepro.engines.stream.recorder import Executed, StreamImage, StreamThread, Words
from livepro.errors import LiveproError
from livepro.events.kernels import Kernel
from livepro.events.program import Program
from livepro.events.told.gains import Gains
from livepro.model import ProcessResult

if TYPE_CHECKING:
    from livepro.events.intervals import IntervalCutter
    from livepro.events.spans.dividing import RegionRecords

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

    def keeps(self, *, waiting: bool) -> None:
        """The run has a region; if it is `waiting`, that does not begin with the run."""

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """Counting begins or ends where each thread has executed so many instructions; a thread that is not
        among `positions` starts later. `goes` has where threads go on, as far as that is known."""


@runtime_checkable
class Divided(Protocol):
    """A consumer that tells what came of each interval of a thread."""

    def cut(self, thread: StreamThread) -> None:
        """An interval of a thread has ended with what has been seen."""

    def intervals(self, image: StreamImage) -> list[dict[str, Any]]:
        """Of each thread of an image its number in the run (`thread`), its `tid` and the `values` by name, a
        list with a number for each interval."""


@runtime_checkable
class Filterable(Protocol):
    """A consumer that can do with less than all of the stream."""

    def filtered(self) -> tuple[Filter | Repeats, Consumer] | None:
        """What it can do with, and who takes that in its place (`Counting`); None if it needs all."""


@runtime_checkable
class Counting(Protocol):
    """A consumer of a filtered stream, which has to be told how often blocks were executed."""

    def executed(self, thread: StreamThread, blocks: Executed) -> None:
        """See `livepro.engines.stream.recorder.Sink`."""


class States:
    """One kernel's states: of each thread, or of each image if its analysis shares them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.name = kernel.name
        self._of: dict[object, list[np.ndarray[Any, Any]]] = {}
        self._last: dict[int, np.ndarray[Any, Any]] = {}
        self._gains: dict[object, Gains] = {}
        self._waiting: bool | None = None  # None: there is no region
        self._told: list[tuple[Mapping[StreamThread, int], Mapping[StreamThread, int]]] = []
        self._regions: dict[StreamThread, RegionRecords] = {}
        self._tables: dict[StreamImage, StaticTables] = {}

    def see(self, thread: StreamThread, words: np.ndarray[Any, Any], tables: StaticTables) -> None:
        """See `Consumer`."""
        key: object = thread.image if self._kernel.analysis.shared else thread
        state = self._of.get(key)
        if state is None:
            state = self._of[key] = self._kernel.state()
        self._kernel.grow(state, len(tables.address))
        gains = self._gains.get(key)
        if gains is None:
            gains = self._gains[key] = Gains(lambda: self._totals(state))
        gains.turn(thread)
        self._tables[thread.image] = tables
        whole = self._waiting is None
        pieces = ((words, 0),) if whole else self._records(thread, tables).pieces(words, tables)
        for piece, lower in pieces:
            self._kernel.consume(piece, thread.number, tables, self._last_of(thread), state, lower)

    def _last_of(self, thread: StreamThread) -> np.ndarray[Any, Any]:
        """What the kernel remembers of a thread."""
        last = self._last.get(thread.number)
        if last is None:
            last = self._last[thread.number] = np.full(1, -1, np.int64)
        return last

    def _records(self, thread: StreamThread, tables: StaticTables) -> RegionRecords:
        """A thread's part of the region."""
        found = self._regions.get(thread)
        if found is None:
            from livepro.events.spans.dividing import RegionRecords

            assert self._waiting is not None
            found = self._regions[thread] = RegionRecords(waiting=self._waiting)
            for positions, goes in self._told:
                for _ in found.bound(positions.get(thread, 0), goes.get(thread), tables):
                    raise AssertionError("nothing is recorded yet")
        return found

    def keeps(self, *, waiting: bool) -> None:
        """See `Regional`."""
        self._waiting = waiting

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """See `Regional`."""
        self._told.append((positions, goes))
        for thread, records in self._regions.items():
            tables = self._tables[thread.image]
            state = self._of[thread.image if self._kernel.analysis.shared else thread]
            for piece, lower in records.bound(positions.get(thread, 0), goes.get(thread), tables):
                self._kernel.consume(piece, thread.number, tables, self._last_of(thread), state, lower)

    def _totals(self, state: list[np.ndarray[Any, Any]]) -> Mapping[str, int]:
        named = SimpleNamespace(**dict(zip(self._kernel.names, state, strict=True)))
        return self._kernel.analysis.totals(named) or {}

    def cut(self, thread: StreamThread) -> None:
        """See `Divided`."""
        for gains in self._gains.values():
            gains.cut(thread)

    def intervals(self, image: StreamImage) -> list[dict[str, Any]]:
        """See `Divided`."""
        found = [
            {"thread": thread.number, "tid": thread.thread.tid, "values": values}
            for gains in self._gains.values()
            for thread, values in gains.told(image)
        ]
        return sorted(found, key=lambda one: one["thread"])

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
        self,
        consumers: Sequence[Consumer],
        memory: int = DEFAULT_MEMORY,
        chunk_words: int = 1 << 16,
        cutter: IntervalCutter | None = None,
    ) -> None:
        self._consumers = tuple(consumers)
        self._cutter = cutter
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

    def executed(self, thread: StreamThread, blocks: Executed) -> None:
        """See `Sink`."""

        def tell() -> None:
            for consumer in self._consumers:
                if isinstance(consumer, Counting) and self._failure is None:
                    try:
                        consumer.executed(thread, blocks)
                    except Exception as error:
                        self._fail(consumer, error)

        self._queue.put(tell)

    def filter(self) -> Filter | Repeats | None:
        """Have its only consumer do with a filtered stream, if it can; what the filter is. To be called
        before anything runs."""
        if len(self._consumers) != 1 or self._cutter is not None:
            return None
        found = self._consumers[0].filtered() if isinstance(self._consumers[0], Filterable) else None
        if found is None:
            return None
        self._consumers = (found[1],)
        return found[0]

    def keeps(self, *, waiting: bool) -> None:
        """Tell the consumers, before anything runs, that there is a region."""
        for consumer in self._consumers:
            if isinstance(consumer, Regional):
                consumer.keeps(waiting=waiting)

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """Tell the consumers, behind all chunks so far, that counting begins or ends."""

        def tell() -> None:
            for consumer in self._consumers:
                if isinstance(consumer, Regional) and self._failure is None:
                    try:
                        consumer.bound(positions, goes, begins=begins)
                    except Exception as error:
                        self._fail(consumer, error)

        self._queue.put(tell)

    # -- its own

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if callable(item):
                item()
            elif self._failure is None:
                thread, words, tables = item
                began = time.perf_counter()
                self._consume(thread, words.view(np.int64), tables)
                self.busy += time.perf_counter() - began

    def _consume(self, thread: StreamThread, words: np.ndarray[Any, Any], tables: StaticTables) -> None:
        pieces = ((0, len(words), 0),) if self._cutter is None else self._cutter.pieces(thread, words, tables)
        for begin, end, ended in pieces:
            for consumer in self._consumers:
                try:
                    consumer.see(thread, words[begin:end], tables)
                except Exception as error:
                    self._fail(consumer, error)
                    return
            for _ in range(ended):
                self._cut(thread)

    def _fail(self, consumer: Consumer, error: Exception) -> None:
        """An analysis has failed: the program is let go, and goes on without it."""
        self._failure = (consumer, error)
        self.abandon()

    def _cut(self, thread: StreamThread) -> None:
        for consumer in self._consumers:
            if isinstance(consumer, Divided):
                consumer.cut(thread)

    def close(self) -> None:
        """Wait until all has been consumed."""
        self._queue.put(None)
        self._worker.join()
        if self._cutter is not None and self._failure is None:
            for thread in self._cutter.finish():
                self._cut(thread)

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
        `command`, `result` and `report` (lines); in a run in intervals the `intervals` (see `Divided`)."""
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
                entry = {
                    "pid": process.pid,
                    "image": process.image,
                    "command": list(process.command),
                    "result": told[0],
                    "report": told[1],
                }
                if self._cutter is not None and isinstance(consumer, Divided):
                    entry["intervals"] = consumer.intervals(image)
                out[consumer.name].append(entry)
        return out
