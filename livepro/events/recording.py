"""A run that records: its analyses compiled, its recorder, and what comes of them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from livepro.engines import default_engine
from livepro.engines.base import Engine
from livepro.engines.region import Phase, Region
from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.stream.recorder import Recorder, StreamThread
from livepro.engines.translate import backend_for
from livepro.errors import LiveproError
from livepro.events.analysis import Analysis
from livepro.events.finding import find
from livepro.events.kernels import Kernel
from livepro.events.needed import compiler
from livepro.events.pump import DEFAULT_MEMORY, Consumer, Pump
from livepro.events.states import States
from livepro.isa.base import Isa
from livepro.kept.place import default_directory
from livepro.model import ProcessResult, RunResult

if TYPE_CHECKING:
    from livepro.events.intervals import Cut, IntervalCutter

CHUNK_WORDS = 1 << 19
"""Words of a chunk: four megabytes of each that waits, if so much may, and twice that of the program, which
fills one while the other is taken. A full one stops its thread for some 70 us, in which it would fill a small
one (gzip of 32 MB is recorded in 2.8, 2.1 and 1.9 s with 2**17, 2**18 and 2**19, four threads in 14.3, 12.6
and 11.8 s); larger ones fit into no cache."""
LEAST_MEMORY = 1_000_000
"""Bytes that may wait, at least: one chunk is filled while another is seen."""

_SLOW = (
    "The step and block engines record some ten thousand instructions a second; "
    "`--engine translate` is thousands of times as fast."
)


def _cutter(cut: Cut) -> IntervalCutter:
    """What cuts streams into intervals. Raises LiveproError if its compiler is missing."""
    with compiler():
        from livepro.events.intervals import IntervalCutter
    return IntervalCutter(cut)


class Recording:
    """The analyses of one run."""

    def __init__(
        self,
        consumers: Sequence[Consumer],
        cut: Cut | None = None,
        memory: int = DEFAULT_MEMORY,
        turn: int = 0,
        *,
        addresses: bool = True,
    ) -> None:
        """`turn` and `addresses`: see `Analysis`."""
        self._cutter = None if cut is None else _cutter(cut)
        words = min(CHUNK_WORDS, memory // 8 // 2)
        self.pump = Pump(consumers, memory, words, self._cutter)
        self.recorder = Recorder(self.pump, addresses=addresses, chunk_words=words, turn=turn)
        self._warnings: list[str] = []
        self._engine: Engine | None = None
        self._counting = True

    @classmethod
    def of(
        cls,
        analyses: Sequence[str | Analysis | type[Analysis]],
        isa: Isa,
        cache: bool | str | Path,
        cut: Cut | None = None,
        memory: int | None = None,
    ) -> Recording:
        """Find and compile analyses; `cut` says where intervals end (None: there are none), `memory` is how
        many bytes of the stream may wait for them (None: DEFAULT_MEMORY). Raises LiveproError for an
        analysis that is not there, or cannot be, and for less memory than two chunks."""
        if memory is not None and memory < LEAST_MEMORY:
            raise LiveproError(
                f"{memory} bytes are too little for a stream.", f"Give it {LEAST_MEMORY} (1M) or more."
            )
        isa.accesses(b"", 0)
        kept = Path(cache) if isinstance(cache, str | Path) else default_directory()
        consumers: list[Consumer] = []
        tables = StreamBlocks(isa).tables()
        turns, addresses = [], False
        for asked in analyses:
            if isinstance(asked, str):
                name, analysis = find(asked)
            elif isinstance(asked, type):
                name, analysis = asked.name or asked.__name__, asked()
            else:
                name, analysis = asked.name or type(asked).__name__, asked
            turns += [analysis.turn] if analysis.turn else []
            addresses |= analysis.addresses
            own = analysis.consumer(name, isa)
            if own is not None:
                consumers.append(own)
                continue
            kernel = Kernel(analysis, name, kept / "kernels")
            began = time.monotonic()
            kernel.compile(tables)
            if sys.stderr.isatty() and time.monotonic() - began > 1:
                print(f"livepro: {name} has been compiled, and is kept so.", file=sys.stderr)
            consumers.append(States(kernel))
        waiting, turn = DEFAULT_MEMORY if memory is None else memory, min(turns) if turns else 0
        return cls(consumers, cut, waiting, turn, addresses=addresses)

    def check(self, engine: str, isa: Isa, region: Region) -> str:
        """The engine to record with, given the one asked for. Raises LiveproError for what does not go
        with recording."""
        name = default_engine(isa.name) if engine == "auto" else engine
        if engine == "auto" and name == "block":
            name = "step"  # which does the same with less ado: both step
        if region != Region() and self._cutter is not None:
            raise LiveproError(
                "With analyses of the event stream, intervals are of the whole run: they do not go with "
                "--start-at, --stop-at, --skip and --count yet.",
                "Leave one or the other away.",
            )
        if name != "translate":
            self._warnings.append(_SLOW)
        elif region == Region():
            self.recorder.filter = self.pump.filter(lines=backend_for(isa.name).filters)
        return name

    def watch(self, engine: Engine) -> None:
        """Take note of the engine that records."""
        self._engine = engine
        self.pump.abandon = engine.request_detach
        engine.control.commanded = self._commanded
        region = engine.region
        if region is not None:
            region.changed = self._bound
            self._counting = region.phase is Phase.COUNTING
            self.pump.keeps(waiting=not self._counting)

    def _bound(self) -> None:
        """The region begins or ends; all threads are halted."""
        engine = self._engine
        assert engine is not None
        assert engine.region is not None
        positions, goes = self._places()
        self.pump.bound(positions, goes, begins=engine.region.phase is Phase.COUNTING, divisible=False)
        self._changed()

    def _commanded(self, command: str) -> None:
        """The run is reset, paused or resumed; all threads are halted."""
        self.recorder.divide()
        for name in self.pump.indivisible:
            warning = f"{name} tells of the whole run, though that was reset or paused."
            if warning not in self._warnings:
                self._warnings.append(warning)
        if command == "reset":
            self.pump.restart(self._places()[0], counting=self._counting)
        else:
            self._changed()

    def _changed(self) -> None:
        """Counting begins or ends, unless it has already; all threads are halted."""
        engine = self._engine
        assert engine is not None
        counting = not engine.control.paused
        if counting != self._counting:
            self._counting = counting
            positions, goes = self._places()
            self.pump.bound(positions, goes, begins=counting, divisible=True)

    def _places(self) -> tuple[dict[StreamThread, int], dict[StreamThread, int]]:
        """How many instructions each thread has executed, and where it goes on as far as that is known."""
        engine = self._engine
        assert engine is not None
        region = engine.region
        streams = {(stream.record, stream.thread): stream for stream in self.recorder.threads}
        positions: dict[StreamThread, int] = {}
        goes: dict[StreamThread, int] = {}
        for image in engine.images:
            lengths = engine.lengths(image)
            for tally in image.tallies:
                stream = streams.get((image, tally.thread))
                if stream is not None and tally.executed is None:
                    counts = engine.raw_counts(tally).at(engine.position(tally))
                    positions[stream] = counts.instructions(lengths)
                    if region is not None and region.last is not None and region.last[0] is tally.thread:
                        goes[stream] = region.last[1]
        return positions, goes

    def finish(self, found: RunResult) -> RunResult:
        """The run's result with what the analyses tell. Raises LiveproError if one of them has failed, once
        the program has ended."""
        self.pump.close()
        try:
            self.pump.check()
        except LiveproError:
            if found.exit is None and found.processes:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(found.processes[0].pid, 0)
            raise
        stats = {
            "words recorded": self.recorder.words,
            "chunks recorded": self.recorder.chunks,
            "seconds waited for analyses": round(self.pump.waited, 3),
            "seconds analysing": round(self.pump.busy, 3),
        }
        return replace(
            found,
            processes=self._with_intervals(found.processes),
            stats={**found.stats, **stats},
            warnings=(*found.warnings, *self._warnings),
            analyses=self.pump.results(self.recorder.images, found.processes, whole=self._whole),
        )

    @property
    def _whole(self) -> bool:
        """Whether nothing of the run is left out."""
        engine = self._engine
        return engine is None or (
            not engine.control.resets and all(t.window.whole for i in engine.images for t in i.tallies)
        )

    def _with_intervals(self, processes: tuple[ProcessResult, ...]) -> tuple[ProcessResult, ...]:
        """The processes, with the intervals of their threads if they are asked for."""
        cutter, engine = self._cutter, self._engine
        if cutter is None or engine is None:
            return processes
        if not self._whole:
            self._warnings.append(
                "Intervals beside analyses of the event stream are of the whole run: there are none of one "
                "that was reset or paused."
            )
            return processes
        images = {(image.process.pid, image.process.image): image for image in self.recorder.images}
        return tuple(
            cutter.told(images[process.pid, process.image], process)
            if (process.pid, process.image) in images
            else process
            for process in processes
        )
