"""Cachegrind's model of caches and branch predictors, as an analysis of the event stream.

After the description in its manual and the notes in its sources (cachegrind/cg_sim.c,
cg_branchpred.c): two first-level caches and a last-level one that sees their misses, LRU, lines are
allocated on writes; an access that crosses lines is one access, and one miss if either misses.
Conditional branches are predicted by 2-bit counters, indexed by 7 bits of the branch's address and the
outcomes of the last 7; indirect ones by a table of last targets with 512 entries; returns are not
predicted. Instructions that modify memory count as reads. Threads share everything, chunk by chunk of
their streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from livepro.cachesim.consumer import SimulatorConsumer
from livepro.cachesim.geometry import check, host, parse
from livepro.cachesim.places import by_place, frames, functions_text
from livepro.cachesim.simulated import Simulated
from livepro.cachesim.simulating import CACHE_EVENTS, EVENTS
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.filtering import Filter, Lines, filter_of
from livepro.engines.stream.recorder import StreamImage
from livepro.events import Analysis, Program
from livepro.events.pump import Consumer
from livepro.events.spans.crew import Crew
from livepro.isa.base import Isa
from livepro.model import Flow


class CacheSim(Analysis):
    """Cache misses and mispredicted branches by Cachegrind's model, by instruction, function and line"""

    name = "cachesim"

    def __init__(
        self,
        i1: str = "",
        d1: str = "",
        ll: str = "",
        caches: bool = True,
        branches: bool = False,
        filtered: bool = True,
    ) -> None:
        given = [
            check(parse(text, option), option) if text else None
            for text, option in ((i1, "--I1"), (d1, "--D1"), (ll, "--LL"))
        ]
        self.hierarchy = host(given)
        self.caches, self.branches = caches, branches
        self._filtered = filtered
        self.flows = (Flow.BRANCH, Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL) if branches else ()
        """Transfers that are predicted."""
        self.events = tuple(e for e in EVENTS if e == "Ir" or (caches if e in CACHE_EVENTS else branches))
        """The events counted, in Cachegrind's order."""

    @property
    def addresses(self) -> bool:
        """See `livepro.events.analysis.Analysis`."""
        return self.caches

    def consumer(self, name: str, isa: Isa) -> SimulatorConsumer:
        """See `livepro.events.analysis.Analysis`."""
        return SimulatorConsumer(name, self, self.reduced)

    @property
    def filter(self) -> Filter | None:
        """What of the stream may be left out: all that hits in the first-level caches. None
        where all of it is needed."""
        if self.branches or not self.caches or not self._filtered:
            return None
        return filter_of(*(Lines(c.line, c.sets, c.ways) for c in (self.hierarchy.d1, self.hierarchy.i1)))

    def reduced(self, name: str) -> tuple[Filter, Consumer] | None:
        """See `livepro.events.pump.Filterable`."""
        from livepro.cachesim.filtered import FilteredSimulation

        return None if self.filter is None else (self.filter, FilteredSimulation(name, self))

    def simulated(self, image: StreamImage, tables: StaticTables, crew: Crew) -> Simulated:
        """See `livepro.cachesim.consumer.Simulator`."""
        return Simulated(self, image, tables, crew)

    def told(self, table: np.ndarray[Any, Any], program: Program) -> dict[str, Any]:
        """The result, of the counts of each instruction by event."""
        lines, functions = by_place(table, program)
        caches = {name: str(c) for name, c in zip(("I1", "D1", "LL"), self.hierarchy[:3], strict=True)}
        return {
            "events": list(self.events),
            "caches": caches if self.caches else {},
            "notes": list(self.hierarchy.notes) if self.caches else [],
            "totals": dict(zip(self.events, table.sum(axis=0).tolist(), strict=True)),
            "functions": functions,
            "lines": lines,
        }

    def frames(self, result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Events by function, and in ``.lines`` by source line."""
        return frames(result)

    def report(self, result: dict[str, Any]) -> Iterator[str]:
        totals, instructions = result["totals"], max(result["totals"]["Ir"], 1)
        for name, shape in result["caches"].items():
            yield f"{name} cache  {shape}"
        yield from result["notes"]
        yield f"{'Ir':<6}{totals['Ir']:>18,}"
        for event, of in (
            *(("I1mr", "Ir"), ("ILmr", "Ir"), ("Dr", ""), ("D1mr", "Dr"), ("DLmr", "Dr"), ("Dw", "")),
            *(("D1mw", "Dw"), ("DLmw", "Dw"), ("Bc", ""), ("Bcm", "Bc"), ("Bi", ""), ("Bim", "Bi")),
        ):
            if event in totals:
                share = f"  {totals[event] / max(totals[of], 1):7.2%} of {of}" if of else " " * 16
                each = 1000 * totals[event] / instructions
                yield f"{event:<6}{totals[event]:>18,}{share}  {each:9.3f} per 1,000 instructions"
        shown = ("Ir", "I1mr", "D1mr", "DLmr", "D1mw", "DLmw", "Bcm", "Bim")
        yield from functions_text(result, [event for event in shown if event in totals])
