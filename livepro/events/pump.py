"""Between the engine and the analyses: chunks wait in a bounded queue for a thread that consumes them.

If the queue is full the engine waits, and with it the program: nothing is lost. An analysis that
raises has the program let go, and the error is told when the run is over.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.filtering import Filter, Repeats
from livepro.engines.stream.recorder import Executed, StreamImage, StreamThread, Words
from livepro.errors import LiveproError
from livepro.model import ProcessResult

if TYPE_CHECKING:
    from livepro.events.intervals import IntervalCutter

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
class Divisible(Protocol):
    """A consumer, `Regional` as well, that can leave out parts of a run that has begun."""

    @property
    def divisible(self) -> bool:
        """Whether it can."""

    def restart(self, positions: Mapping[StreamThread, int], *, counting: bool) -> None:
        """Forget all so far, where each thread has executed so many instructions; a thread that is not among
        `positions` starts later. From there on all is counted if `counting`, else from the next bound on."""


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


@runtime_checkable
class CountingSoFar(Protocol):
    """One that can leave out parts of the run (`Divisible`): what threads have executed is told before."""

    def so_far(self, thread: StreamThread, blocks: Executed) -> None:
        """See `livepro.engines.stream.recorder.Sink`."""


def _divisible(consumer: Consumer) -> bool:
    return isinstance(consumer, Divisible) and consumer.divisible


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

    def so_far(self, thread: StreamThread, blocks: Executed) -> None:
        """See `Sink`."""

        def tell() -> None:
            for consumer in self._consumers:
                if isinstance(consumer, CountingSoFar) and self._failure is None:
                    consumer.so_far(thread, blocks)

        self._queue.put(tell)

    def filter(self, *, lines: bool) -> Filter | Repeats | None:
        """Have its only consumer do with a filtered stream, if it can; what the filter is (a `Filter` only if
        `lines` can be left out). To be called before anything runs."""
        if len(self._consumers) != 1 or self._cutter is not None:
            return None
        found = self._consumers[0].filtered() if isinstance(self._consumers[0], Filterable) else None
        if found is None or (isinstance(found[0], Filter) and not lines):
            return None
        self._consumers = (found[1],)
        return found[0]

    def keeps(self, *, waiting: bool) -> None:
        """Tell the consumers, before anything runs, that there is a region."""
        for consumer in self._consumers:
            if isinstance(consumer, Regional):
                consumer.keeps(waiting=waiting)

    def bound(
        self,
        positions: Mapping[StreamThread, int],
        goes: Mapping[StreamThread, int],
        *,
        begins: bool,
        divisible: bool,
    ) -> None:
        """Tell the consumers that are `divisible`, or those that are not, behind all chunks so far, that
        counting begins or ends."""

        def tell() -> None:
            for consumer in self._consumers:
                if (
                    isinstance(consumer, Regional)
                    and _divisible(consumer) == divisible
                    and self._failure is None
                ):
                    try:
                        consumer.bound(positions, goes, begins=begins)
                    except Exception as error:
                        self._fail(consumer, error)

        self._queue.put(tell)

    @property
    def indivisible(self) -> list[str]:
        """The names of consumers that cannot leave out parts of a run that has begun."""
        return [consumer.name for consumer in self._consumers if not _divisible(consumer)]

    def restart(self, positions: Mapping[StreamThread, int], *, counting: bool) -> None:
        """Tell the consumers, behind all chunks so far, to forget these (see `Divisible`)."""

        def tell() -> None:
            for consumer in self._consumers:
                if isinstance(consumer, Divisible) and consumer.divisible and self._failure is None:
                    try:
                        consumer.restart(positions, counting=counting)
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
        self, images: Sequence[StreamImage], processes: Sequence[ProcessResult], *, whole: bool
    ) -> dict[str, list[Any]]:
        """What each analysis tells of each process image that ran anything, by its name: the `pid`, `image`,
        `command`, `result` and `report` (lines); in a `whole` run in intervals the
        `intervals` (see `Divided`)."""
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
                if whole and self._cutter is not None and isinstance(consumer, Divided):
                    entry["intervals"] = consumer.intervals(image)
                out[consumer.name].append(entry)
        return out
