"""The lines of one process image, and which of its threads uses which bytes of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from livepro.cachesim.sharing import noting
from livepro.cachesim.sharing.noting import EMPTY, NEXT_LINE, OPERAND, THREADS, USED
from livepro.cachesim.sharing.places import Places
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.program import Program
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import Slice
from livepro.events.spans.listing import Listing

if TYPE_CHECKING:
    from livepro.cachesim.sharing.model import Sharing

_FIRST = 12
"""Of so many bits is an index into the table of entries, at first."""


class Entries:
    """The table of `noting`, which grows."""

    def __init__(self, bits: int = _FIRST) -> None:
        self._bits = bits
        self._make(bits)
        self.state = np.array([0, -1, 0], np.int64)

    def _make(self, bits: int) -> None:
        self.keys = np.full(1 << bits, EMPTY, np.int64)
        self.counts = np.zeros((1 << bits, 2), np.int64)
        self.bytes_of = np.zeros((1 << bits, 2), np.uint64)
        self.who = np.full((1 << bits, 2), -1, np.int64)

    def note(self, addresses: Any, operands: Any, begin: int, stop: int, thread: int) -> None:
        """Note operands `begin` to `stop` of a thread."""
        self.state[OPERAND], self.state[NEXT_LINE] = begin, -1
        while True:
            noting.note(
                *(addresses, operands, stop, thread % THREADS, 64 - self._bits),
                *(self.keys, self.counts, self.bytes_of, self.who, self.state),
            )
            if self.state[OPERAND] >= stop:
                return
            old = self.keys, self.counts, self.bytes_of, self.who
            self._bits += 2
            self._make(self._bits)
            shift = 64 - self._bits
            noting.move(*old, shift, self.keys, self.counts, self.bytes_of, self.who)

    @property
    def used(self) -> int:
        """How many entries are used."""
        return int(self.state[USED])


class Core:
    """One thread (`livepro.events.spans.feeding.Taker`)."""

    def __init__(self, image: SharingImage, number: int) -> None:
        self._image = image
        self._number = number

    def take(self, part: Slice) -> None:
        """See `Taker`."""
        self._image.take(self._number, part)

    def cut(self, retired: int) -> None:
        """See `Taker`."""


class SharingImage:
    """See `livepro.cachesim.consumer.SimulatedImage`."""

    def __init__(self, simulator: Sharing, image: StreamImage, tables: StaticTables, crew: Crew) -> None:
        self.listing = Listing()
        self.tables = tables
        self.entries = Entries()
        self._simulator = simulator
        self._crew = crew
        self._threads: dict[int, StreamThread] = {}
        self._places = Places(image.mappings)

    def update(self, tables: StaticTables) -> None:
        """See `SimulatedImage`."""
        self.tables = tables

    def of(self, thread: StreamThread) -> Core:
        """See `SimulatedImage`."""
        self._threads[thread.number % THREADS] = thread
        return Core(self, thread.number)

    def take(self, thread: int, part: Slice) -> None:
        """Note what a thread accesses."""
        self._crew.do([partial(self._note, thread, part)], part.executed)

    def _note(self, thread: int, part: Slice) -> None:
        events = part.events
        begin, stop = int(events.operands_at[part.begin]), int(events.operands_at[part.end])
        self.entries.note(events.addresses, events.operands, begin, stop, thread)

    def totals(self) -> dict[str, int]:
        """See `SimulatedImage`: the lines that threads have used so far."""
        self._crew.wait()
        return {"lines": self.entries.used}

    def told(self, program: Program) -> dict[str, Any]:
        """See `SimulatedImage`."""
        self._crew.wait()
        threads = {n: (one.thread.tid, one.thread.name) for n, one in self._threads.items()}
        return self._simulator.told(self.entries, program, self._places, threads)
