"""The predictors of one process image: each thread has its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.counted import Counted
from livepro.cachesim.predictors import predicting
from livepro.cachesim.predictors.predicting import BASE_BITS, BITS, DEPTH, LONGEST, TABLE_BITS, TABLES
from livepro.engines.stream.blocks import FLOWS, StaticTables
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.program import Program
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import Slice
from livepro.events.spans.listing import Listing
from livepro.model import Flow

if TYPE_CHECKING:
    from livepro.cachesim.predictors.model import Predictors

_KINDS = {
    Flow.BRANCH: predicting.CONDITIONAL,
    Flow.CALL: predicting.CALL,
    Flow.INDIRECT_CALL: predicting.CALL,
    Flow.RETURN: predicting.RETURN,
}
KIND_OF = np.array([_KINDS.get(flow, predicting.OTHER) for flow in FLOWS], np.uint8)
"""What predictors see in a transfer, by its index in `FLOWS`."""


class Core:
    """The predictors of one thread (`livepro.events.spans.feeding.Taker`)."""

    def __init__(self, image: PredictedImage) -> None:
        self._image = image
        # Counters begin weakly against the branch.
        self.bimodal = np.ones(1 << BITS, np.int64)
        self.gshare = np.ones(1 << BITS, np.int64)
        self.history = np.zeros(1, np.int64)
        self.base = np.ones(1 << BASE_BITS, np.int64)
        self.tables = np.zeros((TABLES, 1 << TABLE_BITS, 3), np.int64)
        self.tables[:, :, predicting.TAG] = -1
        self.fold = np.zeros((TABLES, 3), np.int64)
        self.outcomes = np.zeros(LONGEST, np.int64)
        self.state = np.zeros(predicting.ALL, np.int64)
        self.stack = np.zeros(DEPTH, np.int64)
        self.top = np.zeros(2, np.int64)

    def take(self, part: Slice) -> None:
        """See `Taker`."""
        self._image.take(self, part)

    def cut(self, retired: int) -> None:
        """See `Taker`."""

    def predict(
        self, name: str, branches: tuple[Any, ...], code: tuple[Any, ...], counting: tuple[Any, ...]
    ) -> None:
        """Show one predictor the next branches: their arrays and range; kind, address, size of instructions
        and the shift of addresses; and what counts what it gets wrong."""
        number, taken, target, begin, stop = branches
        kind, address, size, shift = code
        seen = (number, taken, begin, stop, kind, address, shift)
        if name == "bimodal":
            predicting.bimodal(*seen, self.bimodal, *counting)
        elif name == "gshare":
            predicting.gshare(*seen, self.gshare, self.history, *counting)
        elif name == "tage":
            own = self.base, self.tables, self.fold, self.outcomes, self.state
            predicting.tage(*seen, *own, *counting)
        else:
            predicting.returns(
                *(number, target, begin, stop, kind, address, size), *(self.stack, self.top), *counting
            )


class PredictedImage:
    """See `livepro.cachesim.consumer.SimulatedImage`."""

    def __init__(
        self, simulator: Predictors, image: StreamImage, tables: StaticTables, crew: Crew, shift: int
    ) -> None:
        self.listing = Listing()
        self.tables = tables
        self._simulator = simulator
        self._crew = crew
        self._shift = shift
        self._counted = Counted(len(simulator.events))

    def update(self, tables: StaticTables) -> None:
        """See `SimulatedImage`."""
        self.tables = tables

    def of(self, thread: StreamThread) -> Core:
        """See `SimulatedImage`."""
        return Core(self)

    def take(self, core: Core, part: Slice) -> None:
        """Predict the next branches of a thread: each predictor by itself."""
        events, counted, tables = part.events, self._counted, self.tables
        self._crew.wait()
        counted.executed(part, len(tables.address))
        kind = KIND_OF[tables.flow]
        branches = events.branches, events.taken, events.targets, part.first_branch, part.last_branch
        code = kind, tables.address.view(np.int64), tables.bytes, self._shift
        predicting.count_branches(
            *(events.branches, part.first_branch, part.last_branch, kind, counted.counts, counted.missed)
        )
        self._crew.do(
            [
                partial(core.predict, name, branches, code, (counted.counts, column, counted.missed))
                for column, name in enumerate(self._simulator.predictors, 3)
            ],
            part.executed,
        )

    def totals(self) -> dict[str, int]:
        """See `SimulatedImage`."""
        self._crew.wait()
        return dict(zip(self._simulator.events[1:], self._counted.missed[1:].tolist(), strict=True))

    def told(self, program: Program) -> dict[str, Any]:
        """See `SimulatedImage`."""
        return self._simulator.told(self.table(len(program.address)), program)

    def table(self, instructions: int) -> npt.NDArray[np.int64]:
        """The counts of that many instructions, by event."""
        self._crew.wait()
        return self._counted.table(instructions)
