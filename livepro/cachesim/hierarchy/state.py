"""The caches and TLBs of one process image; each of its threads is a core with private ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.counted import Counted, Fetches
from livepro.cachesim.hierarchy import levels as columns
from livepro.cachesim.hierarchy.asking import ACCESS_MODIFIED, LOST
from livepro.cachesim.hierarchy.machine import HOLDS, INCLUSIONS, POLICIES, PREFETCHERS, Machine
from livepro.cachesim.hierarchy.simulating import ENTRIES, HINTS, INSTRUCTION, LATEST, simulate
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.program import Program
from livepro.events.spans.column import grown
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import Slice

if TYPE_CHECKING:
    from livepro.cachesim.hierarchy.model import HierarchySim

_KINDS = ("mi", "mr", "mw")
"""What stands behind a level's name in the events of its misses: of fetches, reads, writes."""


_OTHERS = ("Hitm", "Inv")
"""The events of a coherent machine: accesses to lines that another core has modified; copies of other cores
that writes have invalidated."""


def events_of(machine: Machine) -> tuple[str, ...]:
    """The names of the events counted: executions, reads, writes, misses, what is met of other cores."""
    misses = (name for _, _, name in misses_of(machine))
    return ("Ir", "Dr", "Dw", *misses, *(_OTHERS if machine.coherent else ()))


def misses_of(machine: Machine) -> list[tuple[int, int, str]]:
    """The events that are misses: place of the level, kind of access, name."""
    return [
        (place, kind, f"{level.name}{_KINDS[kind]}")
        for place, level in enumerate(machine.levels)
        for kind in HOLDS[level.holds]
    ]


class Lines:
    """The lines of all levels, for as many cores as have been asked for, as `levels` describes them."""

    def __init__(self, machine: Machine) -> None:
        count = len(machine.levels)
        self.spec = np.zeros((count, columns.COLUMNS), np.int64)
        self._shared = sum(level.sets * level.ways for level in machine.levels if level.shared)
        self._private = sum(level.sets * level.ways for level in machine.levels if not level.shared)
        at = {True: 0, False: self._shared}
        for row, level in zip(self.spec, machine.levels, strict=True):
            row[:] = (
                *(at[level.shared], 0 if level.shared else self._private, level.sets),
                *(level.sets - 1 if not level.sets & level.sets - 1 else -1, level.ways),
                *(POLICIES.index(level.policy), level.next, INCLUSIONS.index(level.inclusion)),
                *(level.through, PREFETCHERS.index(level.prefetch), level.tlb, machine.keeps_coherent(level)),
            )
            at[level.shared] += level.sets * level.ways
        self.inner = np.zeros((count, count), np.bool_)
        for place in range(count):
            following = machine.levels[place].next
            while following >= 0:
                self.inner[following, place] = True
                following = machine.levels[following].next
        self.cores = 0
        self.tags = np.full(self._shared, -1, np.int64)
        self.ages = np.zeros(self._shared, np.int64)
        self.flags = np.zeros(self._shared, np.int64)
        self.clock = np.array([0, 1], np.int64)
        self.stat = np.zeros((count, columns.STATS), np.int64)
        self.memory = np.zeros(3, np.int64)

    def add_core(self) -> int:
        """The number of one more core, with empty caches."""
        self.cores += 1
        size = self._shared + self.cores * self._private
        self.tags = np.concatenate((self.tags, np.full(self._private, -1, np.int64)))
        self.ages, self.flags = grown(self.ages, size)[:size], grown(self.flags, size)[:size]
        return self.cores - 1

    def first_slot(self, level: int, core: int) -> int:
        """The first of a core's slots in a level."""
        return int(self.spec[level, columns.BASE] + core * self.spec[level, columns.STEP])

    def arrays(self) -> tuple[Any, ...]:
        """What the functions of `levels` take first."""
        return (
            *(self.spec, self.inner, self.cores, self.tags, self.ages, self.flags),
            *(self.clock, self.stat, self.memory),
        )


class Core:
    """One thread (`livepro.events.spans.feeding.Taker`)."""

    def __init__(self, image: HierarchyImage, number: int) -> None:
        self._image = image
        self.number = number
        self.latest = np.full(LATEST, -1, np.int64)
        self.hints = np.full(HINTS, image.first_slot(number), np.int64)
        self.table = np.zeros((ENTRIES, 4), np.int64)
        """What a stride prefetcher knows."""
        self.table[:, INSTRUCTION] = -1

    def take(self, part: Slice) -> None:
        """See `Taker`."""
        self._image.take(self, part)

    def cut(self, retired: int) -> None:
        """See `Taker`."""


class HierarchyImage:
    """See `livepro.cachesim.consumer.SimulatedImage`."""

    def __init__(self, simulator: HierarchySim, image: StreamImage, tables: StaticTables, crew: Crew) -> None:
        machine = simulator.machine
        self._facts = Fetches(machine.line.bit_length() - 1)
        self.listing = self._facts.listing
        self.tables = tables
        self._simulator = simulator
        self._crew = crew
        self._lines = Lines(machine)
        pages = [machine.levels[head].line if head >= 0 else machine.line for head in machine.heads[2:]]
        self._heads = np.array([*machine.heads, *(size.bit_length() - 1 for size in pages)], np.int64)
        self._columns = np.zeros((len(machine.levels) + 1, len(_KINDS)), np.int64)
        for column, (place, kind, _) in enumerate(misses_of(machine), 3):
            self._columns[place, kind] = column
        events = events_of(machine)
        if machine.coherent:
            self._columns[-1, ACCESS_MODIFIED], self._columns[-1, LOST] = len(events) - 2, len(events) - 1
        self._counted = Counted(len(events))

    def update(self, tables: StaticTables) -> None:
        """See `SimulatedImage`."""
        self.tables = tables
        self._facts.update(tables)

    def of(self, thread: StreamThread) -> Core:
        """See `SimulatedImage`."""
        self._crew.wait()
        return Core(self, self._lines.add_core())

    def first_slot(self, core: int) -> int:
        """The first slot of a core's first TLB of data, 0 if it has none."""
        head = int(self._heads[3])
        return self._lines.first_slot(head, core) if head >= 0 else 0

    def take(self, core: Core, part: Slice) -> None:
        """Simulate the next spans of a core."""
        self._crew.do([partial(self._simulate, core, part, self.tables)], part.executed)

    def _simulate(self, core: Core, part: Slice, tables: StaticTables) -> None:
        events, facts, counted = part.events, self._facts, self._counted
        counted.executed(part, len(tables.address))
        simulate(
            *(events.begins, events.ends, events.marks, events.operands_at),
            *(events.addresses, events.operands, part.begin, part.end),
            *(facts.listing.lengths, tables.address.view(np.int64), tables.bytes, facts.following),
            *(facts.bits, self._heads, core.number, core.latest, core.hints, core.table),
            *(*self._lines.arrays(), self._columns, counted.counts, counted.missed),
        )

    def totals(self) -> dict[str, int]:
        """See `SimulatedImage`."""
        self._crew.wait()
        return dict(zip(self._simulator.events[3:], self._counted.missed[3:].tolist(), strict=True))

    def told(self, program: Program) -> dict[str, Any]:
        """See `SimulatedImage`."""
        self._crew.wait()
        table = self._counted.table(len(program.address))
        return self._simulator.told(table, self._lines.stat, self._lines.memory, program)

    @property
    def stat(self) -> npt.NDArray[np.int64]:
        """The counters of each level (`levels`)."""
        return self._lines.stat
