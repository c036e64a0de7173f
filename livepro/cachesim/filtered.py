"""The simulator of Cachegrind's caches on a filtered stream: what is counted comes from counters, what misses
from what the filter lets through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.entries import PENDING, simulate_entries
from livepro.cachesim.simulating import EVENTS
from livepro.engines.stream.blocks import StaticTables, StreamBlocks
from livepro.engines.stream.recorder import Executed, StreamImage, StreamThread
from livepro.events.program import Program
from livepro.events.spans.column import grown
from livepro.isa.access import READ, Pattern
from livepro.model import ProcessResult

if TYPE_CHECKING:
    from livepro.cachesim.model import CacheSim

_DATA_READ, _DATA_WRITE = EVENTS.index("Dr"), EVENTS.index("Dw")


class FilteredImage:
    """The caches of one process image, and the counts of its instructions."""

    def __init__(self, simulator: CacheSim) -> None:
        caches = simulator.hierarchy[:3]
        shapes = [(cache.line.bit_length() - 1, cache.sets - 1, cache.ways) for cache in caches]
        self._shapes = np.array(shapes, np.int64).ravel()
        sizes = [cache.sets * (2 * cache.ways + 1 if n < 2 else cache.ways) for n, cache in enumerate(caches)]
        self._lines = tuple(np.zeros(size, np.int64) for size in sizes)
        self._clock = np.zeros(2, np.int64)
        self._counts = np.zeros((1024, len(EVENTS)), np.int64)
        self._missed = np.zeros(len(EVENTS), np.int64)
        self._times = np.zeros(1024, np.int64)
        self._partial: list[tuple[int, int, int]] = []
        self._pending: dict[StreamThread, npt.NDArray[np.int64]] = {}

    def see(self, thread: StreamThread, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """Simulate entries of a thread."""
        self._counts = grown(self._counts, len(tables.address))
        pending = self._pending.get(thread)
        if pending is None:
            pending = self._pending[thread] = np.zeros(PENDING, np.int64)
        asked: tuple[Any, ...] = (
            *(words, tables.first, tables.words, tables.address.view(np.int64), tables.bytes, tables.access),
            *(tables.pattern, tables.size, tables.kind, tables.lanes, tables.owner),
            *(pending, self._shapes, *self._lines, self._clock, self._counts, self._missed),
        )
        simulate_entries(*asked)

    def executed(self, blocks: Executed, known: StreamBlocks, sign: int = 1) -> None:
        """Count executions of blocks, whole ones and others, or take them back (-1)."""
        parts = zip(blocks.addresses, blocks.codes, strict=True)
        numbers = np.array([known.number_of(*part) for part in parts], np.int64)
        self._times = grown(self._times, int(numbers.max(initial=0)) + 1)
        np.add.at(self._times, numbers, sign * blocks.times)
        self._partial += [
            (int(numbers[which]), count, sign * times) for which, count, times in blocks.partial
        ]

    def table(self, tables: StaticTables, instructions: int) -> npt.NDArray[np.int64]:
        """The counts of so many instructions, by `EVENTS`."""
        table = grown(self._counts, instructions)[:instructions].copy()
        known = tables.known
        lengths = np.diff(tables.first[: known + 1])
        runs = np.repeat(grown(self._times, known)[:known], lengths)[:instructions]
        for number, count, times in self._partial:
            begin = int(tables.first[number])
            runs[begin : begin + count] += times
        table[:, 0] += runs
        accesses = int(tables.access[instructions])
        plain = np.flatnonzero(tables.pattern[:accesses] == Pattern.ONE)
        owners = tables.owner[plain]
        columns = np.where(tables.kind[plain] & READ, _DATA_READ, _DATA_WRITE)
        np.add.at(table, (owners, columns), runs[owners])
        return table


class FilteredSimulation:
    """Simulates all images of a run (`livepro.events.pump.Consumer`)."""

    def __init__(self, name: str, simulator: CacheSim) -> None:
        self.name = name
        self._simulator = simulator
        self._images: dict[StreamImage, FilteredImage] = {}
        self._so_far: dict[StreamThread, Executed] = {}
        self._counting = True

    def _of(self, image: StreamImage) -> FilteredImage:
        found = self._images.get(image)
        if found is None:
            found = self._images[image] = FilteredImage(self._simulator)
        return found

    def see(self, thread: StreamThread, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """See `Consumer`."""
        if self._counting:
            self._of(thread.image).see(thread, words, tables)

    def executed(self, thread: StreamThread, blocks: Executed) -> None:
        """See `livepro.events.pump.Counting`."""
        if self._counting:
            self._count(thread, blocks, 1)

    def _count(self, thread: StreamThread, blocks: Executed, sign: int) -> None:
        self._of(thread.image).executed(blocks, thread.image.blocks, sign)

    # -- parts of the run that are left out

    divisible = True
    """See `livepro.events.pump.Divisible`."""

    def so_far(self, thread: StreamThread, blocks: Executed) -> None:
        """See `livepro.events.pump.CountingSoFar`."""
        self._so_far[thread] = blocks

    def keeps(self, *, waiting: bool) -> None:
        """See `livepro.events.pump.Regional`: there is no region."""

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """See `livepro.events.pump.Regional`."""
        self._counting = begins
        for thread, blocks in self._so_far.items():
            self._count(thread, blocks, -1 if begins else 1)
        self._so_far.clear()

    def restart(self, positions: Mapping[StreamThread, int], *, counting: bool) -> None:
        """See `livepro.events.pump.Divisible`."""
        self._images.clear()
        self._counting = False
        if counting:
            self.bound(positions, {}, begins=True)
        self._so_far.clear()

    def told(self, image: StreamImage, process: ProcessResult) -> tuple[Any, list[str]] | None:
        """See `Consumer`."""
        if image not in self._images:
            return None
        simulator, program = self._simulator, Program(image, process)
        table = self._images[image].table(image.blocks.tables(), len(program.address))
        result = simulator.told(table[:, [EVENTS.index(event) for event in simulator.events]], program)
        return result, list(simulator.report(result))
