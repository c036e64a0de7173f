"""Numbers by function: instruction types, strides and mispredictions, summed from those of instructions and
branches, and the memory that a function's own instructions have touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.events.program import Program
from livepro.events.structures.touched import INSTRUCTION, distinct
from livepro.isa.access import ALL_64
from livepro.mica.analyses.footprint import Footprint
from livepro.mica.analyses.itypes import Itypes
from livepro.mica.analyses.ppm import Ppm
from livepro.mica.analyses.stride import Stride, values_of
from livepro.mica.counted import BlockTypes, CountedThread
from livepro.mica.facts import Facts
from livepro.mica.settings import Settings
from livepro.mica.thread import Characterised

Array = npt.NDArray[np.int64]


def by_function(
    threads: Sequence[Characterised | CountedThread],
    facts: Facts,
    program: Program,
    settings: Settings,
    types: BlockTypes | None,
) -> list[dict[str, Any]]:
    """The functions executed, those of most events first: `function`, `module` and, as far as asked for,
    `events` and `itypes` (by group), `branches` and `ppm` (mispredictions of each predictor), `stride` and
    `memfootprint` (as MICA's lines have them; the latter not if too much was touched to be kept). `types` are
    those of threads that were counted (None: there are none)."""
    functions = _Functions(facts, program)
    analyses = [analysis for thread in threads for analysis in thread.analyses.values()]
    itypes = [each for each in analyses if isinstance(each, Itypes)]
    if itypes:
        functions.add_itypes(itypes)
    if types is not None:
        functions.add_counts(types, [each for each in threads if isinstance(each, CountedThread)])
    ppm = [each for each in analyses if isinstance(each, Ppm)]
    if ppm:
        functions.add_ppm(ppm)
    strides = [each for each in analyses if isinstance(each, Stride)]
    if strides:
        functions.add_strides(strides)
    footprints = [each for each in analyses if isinstance(each, Footprint)]
    if footprints:
        functions.add_footprints(footprints, settings)
    return functions.rows()


class _Functions:
    """The functions of a program, with what is known of each."""

    def __init__(self, facts: Facts, program: Program) -> None:
        self._facts = facts
        self._program = program
        self._count = len(program.address)  # what a forked child has met since is not known here
        self._places: dict[int, int] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._values: dict[str, Array] = {}  # by name a row of numbers for each function

    def _of(self, addresses: list[int]) -> Array:
        """The numbers of the functions that code addresses are in."""
        for address in addresses:
            if address not in self._places:
                function, module, _ = self._program.place(address & ALL_64)
                self._places[address] = self._number(function, module)
        return np.array([self._places[address] for address in addresses], np.int64)

    def _number(self, function: str, module: str) -> int:
        return self._numbers.setdefault((function, module), len(self._numbers))

    def _add(self, name: str, owners: Array, values: Array) -> None:
        """Add rows of numbers to those of their functions."""
        before = self._values.get(name, np.zeros((0, values.shape[1]), np.int64))
        out = np.zeros((len(self._numbers), values.shape[1]), np.int64)
        out[: len(before)] = before
        np.add.at(out, owners, values)
        self._values[name] = out

    def add_itypes(self, analyses: list[Itypes]) -> None:
        """Events of each group of instruction types."""
        events = _sum([each.by_instruction for each in analyses], self._count)
        rows = np.flatnonzero(events)
        owners = self._of(self._program.address[rows].tolist())
        groups = self._facts.groups_of_types[self._facts.types[rows]]
        self._add("events", owners, events[rows, np.newaxis])
        self._add("itypes", owners, events[rows, np.newaxis] * groups)

    def add_counts(self, types: BlockTypes, threads: list[CountedThread]) -> None:
        """Events of each group of instruction types that block counts tell."""
        events = np.sum([each.executions for each in threads], axis=0)
        executed = np.flatnonzero(events)
        rows = self._program.rows(types.addresses[executed])
        met, which = np.unique(rows, return_inverse=True)
        numbers = np.array([self._number(*self._program.origin(row)) for row in met.tolist()], np.int64)
        counts = events[executed, np.newaxis]
        self._add("events", numbers[which], counts)
        self._add("itypes", numbers[which], counts * types.groups[types.form[executed]])

    def add_ppm(self, analyses: list[Ppm]) -> None:
        """Branches, and those that each predictor has missed."""
        addresses = self._facts.branch_addresses
        missed = _sum([each.by_number for each in analyses], len(addresses))
        rows = np.flatnonzero(missed.any(axis=1))
        owners = self._of([addresses[row] for row in rows.tolist()])
        self._add("branches", owners, missed[rows, :1])
        self._add("ppm", owners, missed[rows, 3:])

    def add_strides(self, analyses: list[Stride]) -> None:
        """Strides of reads and writes."""
        known = self._facts.sites_known
        counts = _sum([each.by_site for each in analyses], known)
        first = np.full(known, -1, np.int64)
        sites = self._facts.sites[: self._count]
        first[sites[::-1]] = np.arange(len(sites))[::-1]  # an instruction of each address
        rows = np.flatnonzero(counts.any(axis=(1, 2, 3)))
        owners = self._of(self._program.address[first[rows]].tolist())
        self._add("strides", owners, counts[rows].reshape(len(rows), counts[0].size))

    def add_footprints(self, analyses: list[Footprint], settings: Settings) -> None:
        """Blocks and pages of data and code."""
        executed = np.unique(np.concatenate([each.executed for each in analyses]))
        executed = executed[executed < self._count]
        of = np.full(self._count, -1, np.int64)
        of[executed] = self._of(self._program.address[executed].tolist())
        touched = [each.touched for each in analyses]
        if any(each is None for each in touched):
            return
        rows = np.concatenate([each for each in touched if each is not None])
        rows = rows[rows[:, INSTRUCTION] < self._count]
        sizes = settings.block_size, settings.page_size
        many, owners = len(self._numbers), of[rows[:, INSTRUCTION]]
        data = [distinct(rows, owners, size - min(sizes), many) for size in sizes]
        low, bytes_of = self._program.address[executed], self._program.size[executed]
        code = [_spanned(of[executed], low >> size, low + bytes_of - 1 >> size, many) for size in sizes]
        self._add("memfootprint", np.arange(many), np.stack((*data, *code), axis=1))

    def rows(self) -> list[dict[str, Any]]:
        """See `by_function`."""
        if not self._values:
            return []
        some = np.zeros(len(self._numbers), bool)
        for values in self._values.values():
            some[: len(values)] |= values.any(axis=1)
        out = []
        for (function, module), number in self._numbers.items():
            if not some[number]:
                continue
            row: dict[str, Any] = {"function": function, "module": module}
            for name, values in self._values.items():
                of = values[number] if number < len(values) else np.zeros_like(values[0])
                if name == "strides":
                    row["stride"] = values_of(of.reshape(2, 2, -1))
                else:
                    row[name] = of.tolist() if name in ("itypes", "ppm", "memfootprint") else int(of[0])
            out.append(row)
        return sorted(out, key=lambda row: (-_weight(row), row["function"], row["module"]))


def _weight(row: dict[str, Any]) -> int:
    """How much there is of a function: the first that is known of events, branches, accesses, blocks."""
    for name, places in (("events", None), ("branches", None), ("stride", (0, 15)), ("memfootprint", (0,))):
        if name in row:
            return int(row[name]) if places is None else sum(row[name][place] for place in places)
    return 0


def _sum(parts: list[npt.NDArray[Any]], length: int) -> npt.NDArray[Any]:
    """The sum of arrays, of which rows behind so many are left out."""
    out = np.zeros((length, *parts[0].shape[1:]), np.int64)
    for part in parts:
        some = part[:length]
        out[: len(some)] += some
    return out


def _spanned(owners: Array, low: Array, high: Array, many: int) -> Array:
    """How many distinct numbers each of `many` owners has, of those from `low` to `high`."""
    found = []
    for step in range(int((high - low).max(initial=0)) + 1):
        some = low + step <= high
        found.append(np.stack((owners[some], low[some] + step)))
    distinct_ones = np.unique(np.concatenate(found, axis=1), axis=1)
    return np.bincount(distinct_ones[0], minlength=many).astype(np.int64)
