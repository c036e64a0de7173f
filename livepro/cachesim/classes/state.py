"""The data cache of one process image, and which lines its threads used last."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.classes.classing import EVENTS, SIZES, SPARED, classify
from livepro.cachesim.geometry import Geometry
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamThread
from livepro.events.program import Program
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import Slice
from livepro.events.spans.listing import Listing
from livepro.events.structures.recency import Recency

if TYPE_CHECKING:
    from livepro.cachesim.classes.model import Misses


class ClassedCache:
    """A cache, the misses of each instruction by class, and the distances of all accesses."""

    def __init__(self, cache: Geometry) -> None:
        self._shape = (cache.line.bit_length() - 1, cache.sets - 1, cache.ways)
        self._tags = np.full(cache.size // cache.line, -1, np.int64)
        self._recency = Recency()
        self.counts = np.zeros((0, len(EVENTS)), np.int64)
        """By instruction and event."""
        self.totals = np.zeros(SPARED + 1, np.int64)
        """By event, and the hits that a fully associative cache would have missed."""
        self._distances = np.zeros(65, np.int64)

    def access(self, addresses: Any, operands: Any, begin: int, stop: int, instructions: int) -> None:
        """Access what operands `begin` to `stop` do, of one of so many instructions each."""
        if instructions > len(self.counts):
            grown = np.zeros((max(instructions, 2 * len(self.counts)), len(EVENTS)), np.int64)
            grown[: len(self.counts)] = self.counts
            self.counts = grown
        while True:
            begin = classify(
                *(addresses, operands, begin, stop, *self._shape, self._tags),
                *(*self._recency.arrays(), self._distances, self.counts, self.totals),
            )
            if begin == stop:
                return
            self._recency.grow()

    def curve(self) -> npt.NDArray[np.int64]:
        """What fully associative LRU caches of 1, 2, 4 ... lines miss (int64, SIZES)."""
        compulsory = self.totals[EVENTS.index("compulsory")]
        # A distance with n bits is at least 2**(n - 1): a cache of so many lines misses.
        behind = np.cumsum(self._distances[::-1])[::-1]
        curve: npt.NDArray[np.int64] = compulsory + behind[1 : SIZES + 1]
        return curve


class ClassedImage:
    """See `livepro.cachesim.consumer.SimulatedImage`. All its threads share the cache."""

    def __init__(self, simulator: Misses, tables: StaticTables, crew: Crew) -> None:
        self.listing = Listing()
        self.tables = tables
        self._cache = ClassedCache(simulator.cache)
        self._simulator = simulator
        self._crew = crew

    def update(self, tables: StaticTables) -> None:
        """See `SimulatedImage`."""
        self.tables = tables

    def of(self, thread: StreamThread) -> ClassedImage:
        """See `SimulatedImage`."""
        return self

    def take(self, part: Slice) -> None:
        """See `livepro.events.spans.feeding.Taker`."""
        self._crew.do([partial(self._access, part, len(self.tables.address))], part.executed)

    def cut(self, retired: int) -> None:
        """See `Taker`."""

    def _access(self, part: Slice, instructions: int) -> None:
        events = part.events
        begin, stop = int(events.operands_at[part.begin]), int(events.operands_at[part.end])
        self._cache.access(events.addresses, events.operands, begin, stop, instructions)

    def totals(self) -> dict[str, int]:
        """See `SimulatedImage`: accesses, and misses by class, so far."""
        self._crew.wait()
        return dict(zip(EVENTS, self._cache.totals.tolist(), strict=False))

    def told(self, program: Program) -> dict[str, Any]:
        """See `SimulatedImage`."""
        self._crew.wait()
        cache = self._cache
        table = np.zeros((len(program.address), len(EVENTS)), np.int64)
        known = min(len(table), len(cache.counts))
        table[:known] = cache.counts[:known]
        return self._simulator.told(table, int(cache.totals[SPARED]), cache.curve(), program)
