"""Branch predictors side by side: an analysis of the event stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.consumer import SimulatorConsumer
from livepro.cachesim.places import by_place, frames, functions_text
from livepro.cachesim.predictors.state import PredictedImage
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage
from livepro.errors import LiveproError
from livepro.events import Analysis, Program
from livepro.events.spans.crew import Crew
from livepro.isa.base import Isa
from livepro.model import Flow

KNOWN = {
    "bimodal": "a 2-bit counter for each of 16,384 addresses",
    "gshare": "the same, addresses mixed with the last 14 outcomes",
    "tage": "TAGE: six tables of histories of 5 to 130 outcomes",
    "ras": "a stack of 16 return addresses",
}
"""The predictors, and what they are."""
_BRANCHES = 20
"""Hottest mispredicted branches in the result."""


class Predictors(Analysis):
    """Mispredictions of bimodal, gshare, TAGE and a return-address stack, by function, line and branch"""

    name = "predictors"
    flows = (Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL, Flow.RETURN)
    """Transfers that are seen."""
    addresses = False
    """See `livepro.events.analysis.Analysis`."""

    def __init__(self, of: str = "bimodal,gshare,tage,ras") -> None:
        asked = tuple(dict.fromkeys(name.strip() for name in of.split(",")))
        for name in asked:
            if name not in KNOWN:
                raise LiveproError(f"There is no predictor '{name}'.", f"There are {', '.join(KNOWN)}.")
        self.predictors = asked
        self.events = ("Ir", "Bc", "Br", *(f"{name}_m" for name in asked))
        """The events counted: instructions, conditional branches, returns, then what each got wrong."""

    def consumer(self, name: str, isa: Isa) -> SimulatorConsumer:
        """See `livepro.events.analysis.Analysis`."""
        self._shift = len(isa.breakpoint).bit_length() - 1  # it is as long as the shortest instruction
        return SimulatorConsumer(name, self)

    def simulated(self, image: StreamImage, tables: StaticTables, crew: Crew) -> PredictedImage:
        """See `livepro.cachesim.consumer.Simulator`."""
        return PredictedImage(self, image, tables, crew, self._shift)

    def told(self, table: npt.NDArray[np.int64], program: Program) -> dict[str, Any]:
        """The result, of the counts of each instruction by event."""
        lines, functions = by_place(table, program)
        worst: dict[int, npt.NDArray[np.int64]] = {}
        for n in np.flatnonzero(table[:, 3:].any(axis=1)).tolist():
            address = int(program.address[n])  # an instruction may be in several blocks
            worst[address] = worst.get(address, 0) + table[n]
        first = sorted(worst, key=lambda address: (-int(worst[address][3:].max()), address))[:_BRANCHES]
        return {
            "events": list(self.events),
            "predictors": {name: KNOWN[name] for name in self.predictors},
            "totals": dict(zip(self.events, table.sum(axis=0).tolist(), strict=True)),
            "branches": [[f"{a:#x}", program.label(a), *worst[a].tolist()] for a in first],
            "functions": functions,
            "lines": lines,
        }

    def frames(self, result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Events by function, in ``.lines`` by source line, and in ``.branches`` the most mispredicted."""
        columns = ("address", "label", *result["events"])
        branches = [dict(zip(columns, row, strict=True)) for row in result["branches"]]
        return {**frames(result), ".branches": branches}

    def report(self, result: dict[str, Any]) -> Iterator[str]:
        totals = result["totals"]
        yield f"Ir {totals['Ir']:,}, conditional branches {totals['Bc']:,}, returns {totals['Br']:,}"
        yield f"{'':<8}{'mispredicted':>16}{'':>9}{'MPKI':>9}"
        for name, what in result["predictors"].items():
            wrong, of = totals[f"{name}_m"], totals["Br" if name == "ras" else "Bc"]
            share, each = wrong / max(of, 1), 1000 * wrong / max(totals["Ir"], 1)
            yield f"{name:<8}{wrong:>16,}{share:>9.3%}{each:>9.3f}  {what}"
        wrong_of = [f"{name}_m" for name in result["predictors"]]
        if result["branches"]:
            yield ""
            yield "".join(f"{event:>14}" for event in ("Bc", *wrong_of)) + "  branch"
            at = [2 + result["events"].index(event) for event in ("Bc", *wrong_of)]
            for row in result["branches"][:10]:
                yield "".join(f"{row[n]:>14,}" for n in at) + f"  {row[0]}  {row[1]}"
        yield from functions_text(result, ("Ir", "Bc", *wrong_of))
