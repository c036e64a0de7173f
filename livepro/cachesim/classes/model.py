"""Why accesses miss the data cache, and how many would miss others: an analysis of the event stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.cachesim.classes.classing import EVENTS
from livepro.cachesim.classes.state import ClassedImage
from livepro.cachesim.consumer import SimulatorConsumer
from livepro.cachesim.geometry import check, host, parse
from livepro.cachesim.places import by_place, frames, functions_text
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage
from livepro.events import Analysis, Program
from livepro.events.spans.crew import Crew
from livepro.isa.base import Isa

_CLASSES = {
    "compulsory": "the line's first use",
    "capacity": "a fully associative cache of this size misses, too",
    "conflict": "it would not: too few ways",
}
_BAR = 30
"""Characters of a bar of all accesses."""


class Misses(Analysis):
    """Data cache misses by cause (compulsory, capacity, conflict), and those of caches of other sizes"""

    name = "misses"
    flows = ()

    def __init__(self, cache: str | tuple[int, ...] = "") -> None:
        """`cache`: SIZE,WAYS,LINE, as in ``32K,8,64`` (default: this machine's first-level data cache)."""
        text = cache if isinstance(cache, str) else ",".join(map(str, cache))
        given = check(parse(text, "cache"), "cache") if text else None
        found = host((None, given, None))
        self.cache = found.d1
        notes = found.notes if given is None else ()
        self.notes = [note for note in notes if note.startswith(("D1:", "the kernel"))]
        """Where the cache differs from the machine's."""

    def consumer(self, name: str, isa: Isa) -> SimulatorConsumer:
        """See `livepro.events.analysis.Analysis`."""
        return SimulatorConsumer(name, self)

    def simulated(self, image: StreamImage, tables: StaticTables, crew: Crew) -> ClassedImage:
        """See `livepro.cachesim.consumer.Simulator`."""
        return ClassedImage(self, tables, crew)

    def told(
        self, table: npt.NDArray[np.int64], spared: int, curve: npt.NDArray[np.int64], program: Program
    ) -> dict[str, Any]:
        """The result, of the counts of each instruction by event, and of what caches of 1, 2, 4 ... lines
        miss: up to the size behind which there is nothing but compulsory misses."""
        lines, functions = by_place(table, program)
        totals = dict(zip(EVENTS, table.sum(axis=0).tolist(), strict=True))
        enough = int(np.argmax(curve == curve[-1]))
        return {
            "cache": str(self.cache),
            "notes": self.notes,
            "events": list(EVENTS),
            "totals": {**totals, "spared": spared},
            "curve": [
                {"size": self.cache.line << n, "misses": int(misses)}
                for n, misses in enumerate(curve[: enough + 1])
            ],
            "functions": functions,
            "lines": lines,
        }

    def frames(self, result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Events by function, in ``.lines`` by source line, in ``.curve`` misses by the size of a cache."""
        return {**frames(result), ".curve": result["curve"]}

    def report(self, result: dict[str, Any]) -> Iterator[str]:
        totals = result["totals"]
        accesses = max(totals["accesses"], 1)
        yield f"data cache  {result['cache']}"
        yield from result["notes"]
        yield f"{'accesses':<12}{totals['accesses']:>18,}"
        yield f"{'misses':<12}{totals['misses']:>18,}  {totals['misses'] / accesses:7.2%} of accesses"
        for name, cause in _CLASSES.items():
            share = totals[name] / max(totals["misses"], 1)
            yield f"  {name:<10}{totals[name]:>18,}  {share:7.2%} of misses    {cause}"
        if totals["spared"]:
            yield f"{'(spared)':<12}{totals['spared']:>18,}  hits that a fully associative cache would miss"
        yield ""
        yield f"{'LRU cache of':>12}{'misses':>18}"
        for row in result["curve"]:
            share = row["misses"] / accesses
            bar = "█" * round(_BAR * share)
            yield f"{_size(row['size']):>12}{row['misses']:>18,}  {share:7.2%}  {bar}".rstrip()
        yield from functions_text(result, EVENTS)


def _size(number: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number >>= 10
    return f"{number:,} {unit}"
