"""The caches and predictors of one process image, with Cachegrind's model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.counted import Counted, Fetches
from livepro.cachesim.geometry import Geometry
from livepro.cachesim.plain import PlainBlocks
from livepro.cachesim.reading import simulate_records
from livepro.cachesim.simulating import COUNTERS, EVENTS, TARGETS, simulate_branches, simulate_caches
from livepro.engines.stream.blocks import FLOWS, StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.program import Program
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import Slice
from livepro.events.spans.flattening import Events
from livepro.model import Flow

if TYPE_CHECKING:
    from livepro.cachesim.model import CacheSim


class Simulated:
    """The caches and predictors of one image, and the counts of its instructions (`livepro.events.spans`)."""

    def __init__(self, simulator: CacheSim, image: StreamImage, tables: StaticTables, crew: Crew) -> None:
        shapes = simulator.hierarchy[:3]
        self._shapes = np.array([_shape(cache) for cache in shapes], np.int64).ravel()
        self._lines = tuple(np.zeros(cache.size // cache.line, np.int64) for cache in shapes)
        self._fetched = np.full(1, -1, np.int64)
        self._history = np.zeros(1, np.int64)
        self._counters = np.zeros(COUNTERS, np.int8)
        self._targets = np.zeros(TARGETS, np.int64)
        self._counted = Counted(len(EVENTS))
        self._facts = Fetches(int(self._shapes[0]))
        self._plain = PlainBlocks(int(self._shapes[0]), shapes[1].line)
        self.listing = self._facts.listing
        self.tables = tables
        """The blocks that there are, as arrays. (Only the engine's thread may ask for them.)"""
        self._simulator = simulator
        self._crew = crew

    def update(self, tables: StaticTables) -> None:
        """See `SimulatedImage`."""
        self.tables = tables
        self.listing.update(tables)
        self._facts.update(tables)
        self._plain.update(tables, self.listing)

    def of(self, thread: StreamThread) -> Simulated:
        """See `SimulatedImage`: all threads share the caches."""
        return self

    def take(self, part: Slice) -> None:
        """See `livepro.events.spans.feeding.Taker`."""
        self._crew.do([partial(self._simulate, part, self.tables)], part.executed)

    def cut(self, retired: int) -> None:
        """See `Taker`."""

    def read(
        self,
        words: npt.NDArray[np.int64],
        upto: int,
        cursor: npt.NDArray[np.int64],
        final: bool,
        counters: npt.NDArray[np.int64],
        noted: npt.NDArray[np.uint8],
        events: Events,
    ) -> bool:
        """See `livepro.events.spans.feeding.Reader`."""
        tables, facts, counted = self.tables, self._facts, self._counted
        conditional = self._conditional(tables) if self._simulator.branches else None
        self._crew.wait()
        counted.grow(len(tables.address))
        asked: tuple[Any, ...] = (
            *(words, upto, cursor, final, counters),
            *(tables.first, tables.words, tables.address.view(np.int64), tables.bytes, tables.flow, noted),
            *(tables.access, tables.pattern, tables.size, tables.kind, tables.lanes),
            *facts.listing.arrays(),
            *events.arrays(),
            *(self._simulator.caches, tables.bare),
            *self._plain.arrays(),
            *(facts.listing.lengths, facts.following, self._shapes, *self._lines, self._fetched),
            *(conditional, self._history, self._counters, self._targets),
            *(counted.runs, self._plain.executions, counted.counts, counted.missed),
        )
        return bool(simulate_records(*asked))

    def _conditional(self, tables: StaticTables) -> npt.NDArray[np.bool_]:
        conditional: npt.NDArray[np.bool_] = tables.flow == FLOWS.index(Flow.BRANCH)
        return conditional

    def _simulate(self, part: Slice, tables: StaticTables) -> None:
        events, facts, counted = part.events, self._facts, self._counted
        counted.executed(part, len(tables.address))
        address_of = tables.address.view(np.int64)
        if self._simulator.caches:
            simulate_caches(
                *(events.begins, events.ends, events.marks, events.operands_at),
                *(events.addresses, events.operands, part.begin, part.end),
                *(facts.listing.lengths, address_of, tables.bytes, facts.following, self._shapes),
                *(*self._lines, self._fetched, counted.counts, counted.missed),
            )
        if self._simulator.branches:
            simulate_branches(
                *(events.branches, events.taken, events.targets, part.first_branch, part.last_branch),
                *(self._conditional(tables), address_of, self._history, self._counters, self._targets),
                *(counted.counts, counted.missed),
            )

    def totals(self) -> dict[str, int]:
        """The misses and mispredictions so far, by event."""
        self._crew.wait()
        asked = self._simulator.events
        found = zip(EVENTS, self._counted.missed.tolist(), strict=True)
        return {event: n for event, n in found if event in asked and "m" in event}

    def told(self, program: Program) -> dict[str, Any]:
        """See `SimulatedImage`."""
        return self._simulator.told(self.table(len(program.address)), program)

    def table(self, instructions: int) -> npt.NDArray[np.int64]:
        """The counts of each instruction by the events that are asked for."""
        self._crew.wait()
        table = self._counted.table(instructions)
        self._plain.add(table)
        return table[:, [EVENTS.index(event) for event in self._simulator.events]]


def _shape(cache: Geometry) -> tuple[int, int, int]:
    return cache.line.bit_length() - 1, cache.sets - 1, cache.ways
