"""A hierarchy of caches and TLBs, simulated: an analysis of the event stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.consumer import SimulatorConsumer
from livepro.cachesim.hierarchy import levels as columns
from livepro.cachesim.hierarchy.machine import HOST, machine
from livepro.cachesim.hierarchy.state import HierarchyImage, events_of
from livepro.cachesim.places import by_place, frames, functions_text
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage
from livepro.events import Analysis, Program
from livepro.events.spans.crew import Crew
from livepro.isa.base import Isa

_STATS = {
    "fetches": columns.ACCESSES,
    "reads": columns.ACCESSES + 1,
    "writes": columns.ACCESSES + 2,
    "fetch_misses": columns.MISSES,
    "read_misses": columns.MISSES + 1,
    "write_misses": columns.MISSES + 2,
    "prefetched": columns.PREFETCHED,
    "useful": columns.USEFUL,
    "written_back": columns.WRITTEN_BACK,
    "invalidated": columns.INVALIDATED,
    "taken": columns.TAKEN,
}
"""What is told of each level."""


TURN = 4096
"""Words of the stream (about as many accesses) after which it is another thread's turn, where caches are
coherent: what they do to each other depends on it. Less would make the program stop more often."""


class HierarchySim(Analysis):
    """Misses of all caches and TLBs of a machine, by level, instruction, function and line"""

    name = "hierarchy"
    flows = ()

    def __init__(self, of: str = HOST) -> None:
        self.machine = machine(of)
        self.events = events_of(self.machine)
        self.turn = TURN if self.machine.coherent else 0

    def consumer(self, name: str, isa: Isa) -> SimulatorConsumer:
        """See `livepro.events.analysis.Analysis`."""
        return SimulatorConsumer(name, self)

    def simulated(self, image: StreamImage, tables: StaticTables, crew: Crew) -> HierarchyImage:
        """See `livepro.cachesim.consumer.Simulator`."""
        return HierarchyImage(self, image, tables, crew)

    def told(
        self,
        table: npt.NDArray[np.int64],
        stat: npt.NDArray[np.int64],
        memory: npt.NDArray[np.int64],
        program: Program,
    ) -> dict[str, Any]:
        """The result, of the counts of each instruction by event and of the counters of `levels`."""
        lines, functions = by_place(table, program)
        totals = dict(zip(self.events, table.sum(axis=0).tolist(), strict=True))
        met = {"invalidated": totals["Inv"], "modified": int(memory[columns.MODIFIED])} if self.turn else None
        return {
            "machine": self.machine.name,
            "events": list(self.events),
            "caches": {level.name: str(level) for level in self.machine.levels},
            "levels": {
                level.name: {key: int(row[at]) for key, at in _STATS.items()}
                for level, row in zip(self.machine.levels, stat, strict=True)
            },
            "memory": {
                "read": int(memory[columns.FROM_MEMORY]),
                "written": int(memory[columns.TO_MEMORY]),
                "line": self.machine.line,
            },
            "totals": totals,
            **({"coherence": met} if met else {}),
            "functions": functions,
            "lines": lines,
        }

    def frames(self, result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Events by function, in ``.lines`` by source line, and in ``.levels`` what each level met."""
        levels = [{"level": name, **counters} for name, counters in result["levels"].items()]
        return {**frames(result), ".levels": levels}

    def report(self, result: dict[str, Any]) -> Iterator[str]:
        instructions = max(result["totals"]["Ir"], 1)
        yield result["machine"]
        for name, shape in result["caches"].items():
            yield f"{name:<6} {shape}"
        heads = (
            ("", 6),
            ("accesses", 18),
            ("misses", 16),
            ("", 9),
            ("MPKI", 9),
            ("prefetched", 14),
            ("used", 8),
        )
        yield "".join(f"{name:>{width}}" for name, width in (*heads, ("written back", 15)))
        for name, met in result["levels"].items():
            accesses = met["fetches"] + met["reads"] + met["writes"]
            missed = met["fetch_misses"] + met["read_misses"] + met["write_misses"]
            used = f"{met['useful'] / met['prefetched']:8.1%}" if met["prefetched"] else f"{'':8}"
            yield (
                f"{name:<6}{accesses:>18,}{missed:>16,}{missed / max(accesses, 1):>9.2%}"
                f"{1000 * missed / instructions:>9.3f}{met['prefetched']:>14,}{used}"
                f"{met['written_back']:>15,}"
            )
        memory = result["memory"]
        read, written = memory["read"], memory["written"]
        yield (
            f"memory: {read:,} lines of {memory['line']} bytes read, {written:,} written; "
            f"{memory['line'] * (read + written) / instructions:.4f} bytes an instruction"
        )
        if "coherence" in result:
            yield (
                "coherence: {invalidated:,} copies invalidated by writes of other threads, {modified:,} "
                "lines asked for that another thread had modified".format(**result["coherence"])
            )
        yield f"Ir {result['totals']['Ir']:,}, Dr {result['totals']['Dr']:,}, Dw {result['totals']['Dw']:,}"
        most = sorted(result["events"][3:], key=lambda event: -result["totals"][event])
        shown = [event for event in result["events"][3:] if event in most[:5]]
        yield from functions_text(result, ["Ir", *shown])
