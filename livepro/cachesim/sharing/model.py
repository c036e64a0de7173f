"""The hottest lines of data, and those that threads share: an analysis of the event stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from livepro.cachesim.consumer import SimulatorConsumer
from livepro.cachesim.sharing.noting import (
    EMPTY,
    FALSE,
    LINE,
    LINE_BITS,
    SHARED,
    THREAD_BITS,
    THREADS,
    kinds_of,
)
from livepro.cachesim.sharing.places import Places
from livepro.cachesim.sharing.state import Entries, SharingImage
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import StreamImage
from livepro.events import Analysis, Program
from livepro.events.spans.crew import Crew
from livepro.isa.base import Isa

KINDS = ("private", "read by several", "shared", "falsely shared")
"""Names of the kinds of lines, by their numbers."""
_MOST = 20
"""Lines told of each kind."""
_SHOWN = 5
"""Lines shown of each kind in the summary, and threads of each."""


class Sharing(Analysis):
    """Hottest lines of data with the threads that read and write them, and those that are falsely shared"""

    name = "sharing"
    flows = ()

    def consumer(self, name: str, isa: Isa) -> SimulatorConsumer:
        """See `livepro.events.analysis.Analysis`."""
        return SimulatorConsumer(name, self)

    def simulated(self, image: StreamImage, tables: StaticTables, crew: Crew) -> SharingImage:
        """See `livepro.cachesim.consumer.Simulator`."""
        return SharingImage(self, image, tables, crew)

    def told(
        self, entries: Entries, program: Program, places: Places, threads: Mapping[int, tuple[int, str]]
    ) -> dict[str, Any]:
        """The result, of `threads` by number, with tid and name: how many lines and accesses there are of
        each kind, and of each kind the lines with most accesses."""
        used = np.flatnonzero(entries.keys != EMPTY)
        used = used[np.argsort(entries.keys[used])]  # line by line, thread by thread
        keys, counts = entries.keys[used], entries.counts[used]
        lines, starts = np.unique(keys >> THREAD_BITS, return_index=True)
        bounds = np.append(starts, len(keys)).astype(np.int64)
        kinds = kinds_of(bounds, entries.bytes_of[used], counts)
        accesses = np.add.reduceat(counts.sum(axis=1), starts) if len(lines) else np.zeros(0, np.int64)
        written = np.add.reduceat(counts[:, 1], starts) > 0 if len(lines) else np.zeros(0, bool)

        def row(n: int) -> dict[str, Any]:
            own = range(int(bounds[n]), int(bounds[n + 1]))
            address = int(lines[n]) << LINE_BITS
            touched = int(np.bitwise_or.reduce(entries.bytes_of[used[own.start : own.stop]].ravel()))
            first = address + (touched & -touched).bit_length() - 1
            return {
                "address": f"{address:#x}",
                "place": places.name(first),
                "kind": KINDS[kinds[n]],
                "accesses": int(accesses[n]),
                "threads": [
                    {
                        **dict(zip(("tid", "thread"), threads[int(keys[at] % THREADS)], strict=True)),
                        "reads": int(counts[at, 0]),
                        "writes": int(counts[at, 1]),
                        "bytes_read": runs(int(entries.bytes_of[used[at], 0])),
                        "bytes_written": runs(int(entries.bytes_of[used[at], 1])),
                        "reader": _place(program, int(entries.who[used[at], 0])),
                        "writer": _place(program, int(entries.who[used[at], 1])),
                    }
                    for at in sorted(own, key=lambda at: (-int(counts[at].sum()), at))
                ],
            }

        order = np.lexsort((lines, -accesses))
        return {
            "line": LINE,
            "totals": {
                name: {"lines": int((kinds == k).sum()), "accesses": int(accesses[kinds == k].sum())}
                for k, name in enumerate(KINDS)
            },
            "written": int(written.sum()),
            "hottest": [row(int(n)) for n in order[:_MOST]],
            "shared": [row(int(n)) for n in order[kinds[order] == SHARED][:_MOST]],
            "falsely_shared": [row(int(n)) for n in order[kinds[order] == FALSE][:_MOST]],
        }

    def frames(self, result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """A row for each thread of each line that is told; in ``.kinds`` lines and accesses by kind."""
        told = {row["address"]: row for key in ("hottest", "shared", "falsely_shared") for row in result[key]}
        head = ("address", "place", "kind")
        return {
            "": [
                {**{key: row[key] for key in head}, **thread}
                for row in told.values()
                for thread in row["threads"]
            ],
            ".kinds": [{"kind": kind, **counts} for kind, counts in result["totals"].items()],
        }

    def report(self, result: dict[str, Any]) -> Iterator[str]:
        yield f"{'lines of ' + str(result['line']) + ' bytes':<20}{'lines':>14}{'accesses':>18}"
        for kind, counts in result["totals"].items():
            yield f"{kind:<20}{counts['lines']:>14,}{counts['accesses']:>18,}"
        for title, key in (
            ("falsely shared", "falsely_shared"),
            ("shared", "shared"),
            ("hottest", "hottest"),
        ):
            if result[key]:
                yield ""
                yield f"{title:<18}{'accesses':>16}  where"
            for row in result[key][:_SHOWN]:
                yield f"{row['address']:>18}{row['accesses']:>16,}  {row['place']}"
                if len(row["threads"]) > 1:
                    yield from map(_thread, row["threads"][:_SHOWN])


def _thread(one: dict[str, Any]) -> str:
    parts = [
        f"{does} {one[of]} {_times(one[count])} ({one[who]})"
        for does, of, count, who in (
            ("reads", "bytes_read", "reads", "reader"),
            ("writes", "bytes_written", "writes", "writer"),
        )
        if one[count]
    ]
    return f"{'':20}{one['thread']} {one['tid']}: {', '.join(parts)}"


def _times(count: int) -> str:
    return f"{count:,} times" if count > 1 else "once"


def _place(program: Program, instruction: int) -> str:
    return program.label(int(program.address[instruction])) if instruction >= 0 else ""


def runs(mask: int) -> str:
    """The bytes of a mask, as in ``0-7, 16``."""
    out = []
    n = 0
    while mask >> n:
        if mask >> n & 1:
            end = n
            while mask >> end + 1 & 1:
                end += 1
            out.append(f"{n}-{end}" if end > n else f"{n}")
            n = end
        n += 1
    return ", ".join(out)
