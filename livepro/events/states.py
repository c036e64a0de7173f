"""What an analysis of the user's has: one kernel's states, of each thread or of each image."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.kernels import Kernel
from livepro.events.program import Program
from livepro.events.told.gains import Gains
from livepro.model import ProcessResult

if TYPE_CHECKING:
    from livepro.events.spans.dividing import RegionRecords


class States:
    """One kernel's states: of each thread, or of each image if its analysis shares them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.name = kernel.name
        self._of: dict[object, list[np.ndarray[Any, Any]]] = {}
        self._last: dict[StreamThread, np.ndarray[Any, Any]] = {}
        self._gains: dict[object, Gains] = {}
        self._waiting = self._bounded = False
        self._seen: dict[StreamThread, int] = {}
        self._told: list[tuple[Mapping[StreamThread, int], Mapping[StreamThread, int]]] = []
        self._regions: dict[StreamThread, RegionRecords] = {}
        self._tables: dict[StreamImage, StaticTables] = {}

    def see(self, thread: StreamThread, words: np.ndarray[Any, Any], tables: StaticTables) -> None:
        """See `livepro.events.pump.Consumer`."""
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
        pieces = self._records(thread, tables).pieces(words, tables) if self._bounded else ((words, 0),)
        for piece, lower in pieces:
            self._kernel.consume(piece, thread.number, tables, self._last_of(thread), state, lower)

    def _last_of(self, thread: StreamThread) -> np.ndarray[Any, Any]:
        """What the kernel remembers of a thread."""
        last = self._last.get(thread)
        if last is None:
            last = self._last[thread] = np.array([-1, 0], np.int64)
        return last

    def _records(self, thread: StreamThread, tables: StaticTables) -> RegionRecords:
        """A thread's part of the region."""
        found = self._regions.get(thread)
        if found is None:
            from livepro.events.spans.dividing import RegionRecords

            seen = self._seen.get(thread, 0)
            found = self._regions[thread] = RegionRecords(waiting=self._waiting, executed=seen)
            for positions, goes in self._told:
                for _ in found.bound(positions.get(thread, 0), goes.get(thread), tables):
                    raise AssertionError("nothing is recorded yet")
        return found

    def keeps(self, *, waiting: bool) -> None:
        """See `livepro.events.pump.Regional`."""
        self._waiting = self._bounded = waiting

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """See `livepro.events.pump.Regional`."""
        self._watch()
        self._told.append((positions, goes))
        for thread, records in self._regions.items():
            tables = self._tables[thread.image]
            state = self._of[thread.image if self._kernel.analysis.shared else thread]
            for piece, lower in records.bound(positions.get(thread, 0), goes.get(thread), tables):
                self._kernel.consume(piece, thread.number, tables, self._last_of(thread), state, lower)

    def _watch(self) -> None:
        """From now on it is known where threads are."""
        if not self._bounded:
            from livepro.events.spans.dividing import RegionRecords

            self._bounded = True
            for thread, last in self._last.items():
                self._regions[thread] = RegionRecords(waiting=False, executed=int(last[1]))

    divisible = True
    """See `livepro.events.pump.Divisible`."""

    def restart(self, positions: Mapping[StreamThread, int], *, counting: bool) -> None:
        """See `livepro.events.pump.Divisible`."""
        self._watch()
        for thread, records in self._regions.items():
            self._seen[thread] = records.position
            self._last_of(thread)[0] = -1
        self._of.clear()
        self._gains.clear()
        self._regions.clear()
        self._waiting, self._told = True, [(positions, {})] if counting else []

    def _totals(self, state: list[np.ndarray[Any, Any]]) -> Mapping[str, int]:
        named = SimpleNamespace(**dict(zip(self._kernel.names, state, strict=True)))
        return self._kernel.analysis.totals(named) or {}

    def cut(self, thread: StreamThread) -> None:
        """See `livepro.events.pump.Divided`."""
        for gains in self._gains.values():
            gains.cut(thread)

    def intervals(self, image: StreamImage) -> list[dict[str, Any]]:
        """See `livepro.events.pump.Divided`."""
        found = [
            {"thread": thread.number, "tid": thread.thread.tid, "values": values}
            for gains in self._gains.values()
            for thread, values in gains.told(image)
        ]
        return sorted(found, key=lambda one: one["thread"])

    def told(self, image: StreamImage, process: ProcessResult) -> tuple[Any, list[str]] | None:
        """See `livepro.events.pump.Consumer`."""
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
