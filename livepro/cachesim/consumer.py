"""What sees the streams of a run for the simulator: threads of an image share its caches and predictors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import FLOWS, StaticTables
from livepro.engines.stream.filtering import Filter
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.program import Program
from livepro.events.pump import Consumer
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import Feed, Taker
from livepro.events.spans.flattening import Turns
from livepro.events.spans.listing import Listing
from livepro.events.spans.region import RegionFeed, Regions
from livepro.events.told.gains import Gains
from livepro.model import Flow, ProcessResult


class SimulatedImage(Protocol):
    """What is simulated for one process image (`livepro.events.spans`)."""

    listing: Listing
    tables: StaticTables
    """The blocks that there are, as arrays. (Only the engine's thread may ask for them.)"""

    def update(self, tables: StaticTables) -> None:
        """Look at the blocks that are new in the `tables` as they are now."""

    def of(self, thread: StreamThread) -> Taker:
        """Who takes the spans of one of its threads; asked once for each."""

    def totals(self) -> dict[str, int]:
        """The misses and mispredictions so far, by event."""

    def told(self, program: Program) -> dict[str, Any]:
        """The result, once all is seen."""


class Simulator(Protocol):
    """An analysis that simulates."""

    @property
    def flows(self) -> Sequence[Flow]:
        """The transfers of which it is told where they went."""

    def simulated(self, image: StreamImage, tables: StaticTables, crew: Crew) -> SimulatedImage:
        """The state of an image whose code begins with these tables; it simulates through the crew."""

    def report(self, result: dict[str, Any]) -> Iterable[str]:
        """The lines that the summary shows."""


Reduced = Callable[[str], tuple[Filter, Consumer] | None]


class SimulatorConsumer:
    """Simulates all images of a run (`livepro.events.pump.Consumer`, `Divided`)."""

    def __init__(self, name: str, simulator: Simulator, reduced: Reduced | None = None) -> None:
        """`reduced` makes, by its name, who does with less than all of the stream."""
        self.name = name
        self._reduced = reduced
        self._simulator = simulator
        self._turns = Turns()
        self._crew = Crew()
        self._images: dict[StreamImage, SimulatedImage] = {}
        self._gains: dict[StreamImage, Gains] = {}
        self._feeds: dict[StreamThread, Feed | RegionFeed] = {}
        self._at: StreamThread | None = None
        self._regions = Regions()
        self._noted = np.array([flow in simulator.flows for flow in FLOWS], np.uint8)

    def filtered(self) -> tuple[Filter, Consumer] | None:
        """See `livepro.events.pump.Filterable`."""
        return None if self._reduced is None else self._reduced(self.name)

    def see(self, thread: StreamThread, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """See `Consumer`."""
        simulated = self._images.get(thread.image)
        if simulated is None:
            simulated = self._simulator.simulated(thread.image, tables, self._crew)
            self._images[thread.image] = simulated
            self._gains[thread.image] = Gains(simulated.totals)
        feed = self._feeds.get(thread)
        if feed is None:
            feed = self._feeds[thread] = self._regions.feed(
                thread, simulated.of(thread), simulated.listing, self._turns, self._noted
            )
        if thread is not self._at:
            self._settle()
            self._gains[thread.image].turn(thread)
            self._at = thread
        simulated.update(tables)
        feed.see(words, tables)

    def keeps(self, *, waiting: bool) -> None:
        """See `livepro.events.pump.Regional`."""
        self._regions.keeps(waiting=waiting)

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """See `livepro.events.pump.Regional`."""
        self._regions.bound(positions, goes, lambda thread: self._images[thread.image].tables)

    divisible = True
    """See `livepro.events.pump.Divisible`."""

    def restart(self, positions: Mapping[StreamThread, int], *, counting: bool) -> None:
        """See `livepro.events.pump.Divisible`."""
        self._regions.restart(positions, lambda thread: self._images[thread.image].tables, counting=counting)
        self._crew.wait()
        self._images.clear()
        self._gains.clear()
        self._feeds.clear()
        self._at = None

    def _settle(self) -> None:
        """Have everything simulated that has been seen."""
        if self._at is not None:
            self._feeds[self._at].release(self._images[self._at.image].tables)

    def cut(self, thread: StreamThread) -> None:
        """See `Divided`."""
        self._settle()
        for gains in self._gains.values():
            gains.cut(thread)

    def intervals(self, image: StreamImage) -> list[dict[str, Any]]:
        """See `Divided`."""
        found = [
            {"thread": thread.number, "tid": thread.thread.tid, "values": values}
            for thread, values in self._gains[image].told(image)
        ]
        return sorted(found, key=lambda one: one["thread"])

    def told(self, image: StreamImage, process: ProcessResult) -> tuple[Any, list[str]] | None:
        """See `Consumer`."""
        if image not in self._images:
            return None
        result = self.finished(image).told(Program(image, process))
        self._crew.dismiss()
        return result, list(self._simulator.report(result))

    def finished(self, image: StreamImage) -> SimulatedImage:
        """What is simulated for an image, once all of it is seen."""
        simulated = self._images[image]
        for thread, feed in self._feeds.items():
            if thread.image is image:
                feed.finish(simulated.tables)
        return simulated
