"""The trace of a run, as an analysis of the event stream that writes files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.cachesim.geometry import Hierarchy
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.errors import LiveproError
from livepro.events.analysis import Analysis
from livepro.isa.base import Isa
from livepro.model import ProcessResult
from livepro.traces import flattening
from livepro.traces.champsim import ChampSimWriter, Templates
from livepro.traces.columns import NpzWriter, ParquetWriter
from livepro.traces.flattening import Events, skip
from livepro.traces.output import SUFFIXES, Outputs, named
from livepro.traces.parts import ALL, FOREVER, NEVER, Part
from livepro.traces.ramulator import RamulatorWriter
from livepro.traces.texts import TextWriter, din, lackey

FORMATS = ("champsim", "din", "lackey", "ramulator2", "npz", "parquet")


class Written(NamedTuple):
    """A file that has been written: of which thread (`number` from 0, `tid`, of process `pid`) and part, with
    instructions, loads and stores."""

    path: Path
    number: int
    pid: int
    tid: int
    part: Part
    instructions: int
    loads: int
    stores: int


class Writer(Protocol):
    """Writes one file."""

    def put(self, events: Any, tables: StaticTables) -> None:
        """The next events."""

    def close(self) -> None:
        """Write what has been held back."""


def format_of(path: Path, asked: str) -> str:
    """The format of a file: as asked for, else as its name says, else ChampSim's. Raises LiveproError for a
    compressed name of a format that is compressed already."""
    plain = path.with_suffix("") if path.suffix in SUFFIXES else path
    found = asked or (plain.suffix[1:] if plain.suffix[1:] in FORMATS else "champsim")
    if found in ("npz", "parquet") and path.suffix in SUFFIXES:
        raise LiveproError(
            f"{path}: {found} is compressed already.", f"Leave {path.suffix} away: -o {plain.name}."
        )
    return found


class Trace(Analysis):
    """Writes what threads executed and accessed for a simulator (`livepro trace`)"""

    name = "trace"

    def __init__(
        self,
        path: Path,
        form: str,
        parts: tuple[Part, ...] = (ALL,),
        *,
        thread: int | None = None,
        hierarchy: Hierarchy | None = None,
        compressors: int = 0,
    ) -> None:
        """Write to `path` (and to files named after it) in format `form`. `thread` is the only one that is
        written, from 0 (None: all)."""
        self.path = path
        self.form = form
        self.parts = tuple(sorted(parts, key=lambda part: (part.start, part.end)))
        self.thread = thread
        self.hierarchy = hierarchy
        self.outputs = Outputs(compressors)
        self.finished: Callable[[], None] = lambda: None
        """Called once nothing more will be written."""
        self._consumer: TraceConsumer | None = None

    def consumer(self, name: str, isa: Isa) -> TraceConsumer:
        """See `livepro.events.analysis.Analysis`."""
        self._consumer = TraceConsumer(name, isa, self)
        return self._consumer

    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """Nothing: the consumer has it."""
        return {}

    def merge(self, into: SimpleNamespace, other: SimpleNamespace) -> None:
        """Nothing to add."""

    def close(self) -> list[Written]:
        """End all files, and say which there are. Raises LiveproError if one cannot be written."""
        try:
            return [] if self._consumer is None else self._consumer.close()
        finally:
            self.outputs.close()


class TraceConsumer:
    """Writes the threads of a run (`livepro.events.pump.Consumer`)."""

    def __init__(self, name: str, isa: Isa, trace: Trace) -> None:
        self.name = name
        self._isa = isa
        self._trace = trace
        self._events = Events()
        self._templates: dict[StreamImage, Templates] = {}
        self._threads: dict[StreamThread, ThreadTrace] = {}
        self._said = False
        self._waiting = False
        self._begin: Mapping[StreamThread, int] = {}
        self._end: Mapping[StreamThread, int] | None = None
        self.goes: Mapping[StreamThread, int] = {}

    def see(self, thread: StreamThread, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """See `Consumer`."""
        trace = self._trace
        if trace.thread is not None and thread.number != trace.thread:
            return
        found = self._threads.get(thread)
        if found is None:
            found = self._threads[thread] = ThreadTrace(self, thread, self._parts(thread))
        if trace.form == "champsim":
            self.templates(thread.image).grow()
        try:
            found.see(words, tables, self._events)
        except LiveproError:
            self.abandon()
            raise
        if trace.thread is not None and found.over and not self._said:
            self._said = True
            trace.finished()

    def keeps(self, *, waiting: bool) -> None:
        """See `livepro.events.pump.Regional`."""
        self._waiting = waiting

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """See `livepro.events.pump.Regional`."""
        if begins:
            self._waiting, self._begin = False, positions
            for stream, thread in self._threads.items():
                thread.begin(self._parts(stream))
        else:
            self._end, self.goes = positions, goes
            for stream, thread in self._threads.items():
                thread.end(positions.get(stream, 0))

    def _parts(self, thread: StreamThread) -> tuple[Part, ...]:
        """What is to be written of a thread, as far as that is known."""
        if self._waiting:
            return (NEVER,)
        end = FOREVER if self._end is None else self._end.get(thread, 0)
        begin = self._begin.get(thread, 0)
        moved = [
            part._replace(start=part.start + begin, end=min(part.end + begin, end))
            for part in self._trace.parts
        ]
        return tuple(part for part in moved if part.start < part.end)

    def templates(self, image: StreamImage) -> Templates:
        """ChampSim's records of an image."""
        known = self._templates.get(image)
        if known is None:
            known = self._templates[image] = Templates(self._isa, image.blocks)
        return known

    def writer(self, thread: StreamThread, part: Part) -> tuple[Path, Writer]:
        """What writes a part of a thread. Raises LiveproError where that cannot be."""
        trace = self._trace
        number = thread.number if trace.thread is None else 0
        path = named(trace.path, number, part.name)
        if trace.form == "npz":
            return path, NpzWriter(path)
        if trace.form == "parquet":
            return path, ParquetWriter(path)
        output = trace.outputs.open(path)
        if trace.form == "champsim":
            inner: Any = ChampSimWriter(output, self.templates(thread.image))
        elif trace.form == "ramulator2":
            inner = RamulatorWriter(output, trace.hierarchy)
        else:
            inner = TextWriter(output, din if trace.form == "din" else lackey)
        return path, _Filed(inner, output)

    def told(self, image: StreamImage, process: ProcessResult) -> tuple[Any, list[str]] | None:
        """See `Consumer`."""
        return None

    def abandon(self) -> None:
        """Close the files as they are, after one could not be written."""
        for thread in self._threads.values():
            thread.abandon()

    def close(self) -> list[Written]:
        """See `Trace.close`."""
        out: list[Written] = []
        for thread in self._threads.values():
            thread.close()
            out += thread.written
        return out


class _Filed:
    """A writer with its file."""

    def __init__(self, inner: Writer, output: Any) -> None:
        self._inner = inner
        self._output = output

    def put(self, events: Any, tables: StaticTables) -> None:
        self._inner.put(events, tables)

    def close(self) -> None:
        self._inner.close()
        self._output.close()


class _Open:
    """A part that is being written."""

    def __init__(self, part: Part, path: Path, writer: Writer) -> None:
        self.part = part
        self.path = path
        self.writer = writer
        self.counts = np.zeros(6, np.int64)


class ThreadTrace:
    """One thread's files."""

    def __init__(self, consumer: TraceConsumer, stream: StreamThread, parts: tuple[Part, ...]) -> None:
        self._consumer = consumer
        self._stream = stream
        self._cursor: npt.NDArray[np.int64] = flattening.cursor()  # type: ignore[no-untyped-call]
        self._coming = list(parts)
        self._open: list[_Open] = []
        self._tables: StaticTables | None = None
        self.written: list[Written] = []

    @property
    def over(self) -> bool:
        """Whether nothing more will be written."""
        return not self._coming and not self._open

    def see(self, words: npt.NDArray[np.int64], tables: StaticTables, events: Events) -> None:
        """The next whole records of the thread."""
        cursor, self._tables = self._cursor, tables
        cursor[flattening.AT] = 0
        while not self.over:
            position = int(cursor[flattening.POSITION])
            while self._coming and self._coming[0].start <= position:
                part = self._coming.pop(0)
                self._open.append(_Open(part, *self._consumer.writer(self._stream, part)))
            limit = min([one.part.end for one in self._open] + [p.start for p in self._coming[:1]])
            if not self._open:
                skip(words, cursor, limit, tables.first, tables.words)
            why = events.fill(words, cursor, limit, tables)  # type: ignore[no-untyped-call]
            kinds = np.bincount(events.what[: events.count], minlength=6)
            for one in self._open:
                one.counts += kinds
                one.writer.put(events, tables)
            if why == flattening.DONE:
                return
            if why == flattening.LIMIT:
                self._end(limit)

    def begin(self, parts: tuple[Part, ...]) -> None:
        """What is to be written is known now."""
        self._coming = list(parts)

    def end(self, position: int) -> None:
        """Nothing is to be written behind instruction `position`."""
        self._coming = [p._replace(end=min(p.end, position)) for p in self._coming if p.start < position]
        for one in self._open:
            one.part = one.part._replace(end=min(one.part.end, position))
        self._end(int(self._cursor[flattening.POSITION]))

    def _end(self, position: int) -> None:
        """Close the parts that end there."""
        for one in [one for one in self._open if one.part.end <= position]:
            self._open.remove(one)
            self._finish(one)

    def _finish(self, one: _Open) -> None:
        counts, stream = one.counts.tolist(), self._stream
        self.written.append(
            Written(
                *(one.path, stream.number, stream.image.process.pid, stream.thread.tid, one.part),
                *(counts[0], counts[1], counts[2] + counts[3]),
            )
        )
        goes = self._consumer.goes.get(stream)
        if goes is not None and self._tables is not None and counts[0] == one.part.end - one.part.start:
            behind = Events(1)
            behind.what[0], behind.where[0], behind.count = flattening.GOES_ON, goes, 1
            one.writer.put(behind, self._tables)
        one.writer.close()

    def close(self) -> None:
        """The thread has ended."""
        self._end(FOREVER + 1)

    def abandon(self) -> None:
        """Close what is open as far as it can be."""
        for one in self._open:
            try:
                one.writer.close()
            except (LiveproError, OSError, ValueError):
                continue
        self._open, self._coming = [], []
