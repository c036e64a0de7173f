"""Numbers by function: instruction types and mispredictions, summed from those of instructions and
branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.events.program import Program
from livepro.isa.access import ALL_64
from livepro.mica.analyses.itypes import Itypes
from livepro.mica.analyses.ppm import Ppm
from livepro.mica.analyses.stride import Stride
from livepro.mica.facts import Facts
from livepro.mica.thread import Characterised


def by_function(threads: list[Characterised], facts: Facts, program: Program) -> list[dict[str, Any]]:
    """The functions executed, those of most events first: `function`, `module` and, as far as asked for,
    `events` and `itypes` (by group), `branches` and `ppm` (mispredictions of each predictor), and `stride`
    (as MICA's line has them)."""
    count = len(program.address)
    branches = facts.branch_addresses
    itypes, misses = np.zeros(count, np.int64), np.zeros((len(branches), 15), np.int64)
    strides = np.zeros((facts.sites_known, 2, 2, 8), np.int64)
    asked = set()
    for thread in threads:
        for name, analysis in thread.analyses.items():
            if isinstance(analysis, Itypes):
                _add(itypes, analysis.by_instruction)
            elif isinstance(analysis, Ppm):
                _add(misses, analysis.by_number)
            elif isinstance(analysis, Stride):
                _add(strides, analysis.by_site)
            else:
                continue
            asked.add(name)
    if not asked:
        return []
    sites = facts.sites[:count]  # what a forked child has met since is not known here
    first = np.full(facts.sites_known, -1, np.int64)
    first[sites[::-1]] = np.arange(len(sites))[::-1]  # an instruction of each address
    rows = np.flatnonzero(itypes)
    places: dict[int, tuple[str, str]] = {}

    def place(address: int) -> tuple[str, str]:
        address &= ALL_64
        if address not in places:
            function, module, _ = program.place(address)
            places[address] = (function, module)
        return places[address]

    found: dict[tuple[str, str], _Row] = {}
    groups = facts.groups_of_types[facts.types[:count]]
    for row in rows.tolist():
        one = found.setdefault(place(int(program.address[row])), _Row(groups.shape[1]))
        one.events += int(itypes[row])
        one.itypes += itypes[row] * groups[row]
    for number in np.flatnonzero(misses.any(axis=1)).tolist():
        found.setdefault(place(branches[number]), _Row(groups.shape[1])).branches += misses[number]
    for site in np.flatnonzero(strides.any(axis=(1, 2, 3))).tolist():
        address = int(program.address[first[site]])
        found.setdefault(place(address), _Row(groups.shape[1])).strides += strides[site]
    out = []
    for (function, module), one in found.items():
        row_of: dict[str, Any] = {"function": function, "module": module}
        if "itypes" in asked:
            row_of |= {"events": one.events, "itypes": one.itypes.tolist()}
        if "ppm" in asked:
            row_of |= {"branches": int(one.branches[0]), "ppm": one.branches[3:].tolist()}
        if "stride" in asked:
            row_of |= {"stride": one.stride_values()}
        out.append(row_of)
    return sorted(out, key=lambda r: (-r.get("events", r.get("branches", 0)), r["function"], r["module"]))


class _Row:
    """The sums of one function."""

    def __init__(self, groups: int) -> None:
        self.events = 0
        self.itypes = np.zeros(groups, np.int64)
        self.branches = np.zeros(15, np.int64)
        self.strides = np.zeros((2, 2, 8), np.int64)

    def stride_values(self) -> list[int]:
        from livepro.mica.analyses.stride import values_of

        return values_of(self.strides)


def _add(into: npt.NDArray[np.int64], more: npt.NDArray[np.int64]) -> None:
    length = min(len(into), len(more))
    into[:length] += more[:length]
