"""The rows of a picture's lists: ranked, cut, named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import PurePath
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import ImageRecord
from livepro.live.catalogue import Catalogue, Ints
from livepro.live.sums import Recent, Sum
from livepro.live.tracked import Tracked
from livepro.model.itypes import DEFAULT_GROUPS
from livepro.model.live import BlockRow, FunctionRow, Line, Measure, Query, ThreadRow

K = TypeVar("K")

MOST_LINES = 5000
"""Instructions of a function that are listed."""


def threads(found: Iterable[tuple[ImageRecord, Tracked, bool]], query: Query) -> tuple[ThreadRow, ...]:
    """A row for each thread that has executed anything or may yet, in the query's order."""
    out = []
    for record, tracked, alive in found:
        if not alive and not tracked.instructions:
            continue
        rates = tracked.recent.rates()
        process = record.process
        out.append(
            ThreadRow(
                number=tracked.number,
                pid=process.pid,
                tid=tracked.thread.tid,
                name=tracked.name,
                program=PurePath(process.command[0]).name if process.command else "",
                alive=alive,
                blocks=tracked.blocks,
                instructions=Measure(tracked.instructions, rates[0]),
                simd=Measure(tracked.simd, rates[1]),
            )
        )
    size = _size(query)
    orders: dict[str, Callable[[ThreadRow], object]] = {
        "instructions": lambda row: (-size(row.instructions), row.number),
        "SIMD": lambda row: (-size(row.simd), -size(row.instructions), row.number),
        "start": lambda row: row.number,
        "name": lambda row: (row.name, row.number),
    }
    return tuple(sorted(out, key=orders[query.thread_order]))  # type: ignore[arg-type]


def _size(query: Query) -> Callable[[Measure], float]:
    return (lambda measure: measure.rate) if query.by_rate else (lambda measure: measure.total)


class Shown:
    """What some threads executed, as lists. Rates are of the samples in `recent`."""

    def __init__(self, catalogue: Catalogue, total: Sum, recent: Recent) -> None:
        self._catalogue = catalogue
        self._total = total
        self._seconds = recent.seconds or 1.0
        self._executions = total.executions
        self._recent = recent.executions(len(catalogue))
        self._features = total.features

    def _measure(self, total: int, recent: int) -> Measure:
        return Measure(max(0, total), max(0.0, recent / self._seconds))

    @property
    def described(self) -> int:
        """Instructions of the blocks that the lists are made of."""
        return int(self._features[0])

    @cached_property
    def _recent_features(self) -> Ints:
        moved = np.flatnonzero(self._recent)
        out: Ints = self._recent[moved] @ self._catalogue.of(moved)
        return out

    def itypes(self) -> tuple[tuple[str, Measure], ...]:
        """The instruction-type groups, in their order, those that were not executed included."""
        found = {f.name: at for at, f in enumerate(self._catalogue.features) if f.kind == "itype"}
        return tuple((g, self._feature(found[g]) if g in found else Measure()) for g in DEFAULT_GROUPS)

    def simd(self) -> tuple[tuple[tuple[str, str], Measure], ...]:
        """(set, width), the most frequent first."""
        return self._ranked((f.name, f.width) if f.kind == "set" else None for f in self._catalogue.features)

    def simd_types(self) -> tuple[tuple[str, Measure], ...]:
        """SIMD types, the most frequent first."""
        return self._ranked(f.name if f.kind == "type" else None for f in self._catalogue.features)

    def _feature(self, at: int) -> Measure:
        return self._measure(int(self._features[at]), int(self._recent_features[at]))

    def _ranked(self, keys: Iterable[K | None]) -> tuple[tuple[K, Measure], ...]:
        found = [(key, self._feature(at)) for at, key in enumerate(keys) if key is not None]
        return tuple(sorted((f for f in found if f[1].total), key=lambda f: -f[1].total))

    def functions(self, query: Query) -> tuple[tuple[FunctionRow, ...], int]:
        """The first functions in the query's order, and how many there are."""
        catalogue = self._catalogue
        number = len(catalogue.functions)
        simd = catalogue.simd
        of = catalogue.function

        def by_function(values: Ints) -> Ints:
            out = np.zeros(number, np.int64)
            np.add.at(out, of, values)
            return out

        instructions = by_function(self._executions * catalogue.length)
        recent = by_function(self._recent * catalogue.length)
        ran = (self._executions != 0) & (catalogue.parent == np.arange(len(catalogue)))
        blocks = by_function(ran.astype(np.int64))
        vector = by_function(self._executions * simd)
        recent_vector = by_function(self._recent * simd)
        executed = np.flatnonzero(instructions > 0)
        ranks = {
            "instructions": recent if query.by_rate else instructions,
            "SIMD": recent_vector if query.by_rate else vector,
            "blocks": blocks,
        }
        if query.function_order == "name":
            order = np.array(sorted(executed.tolist(), key=self._name), np.int64)
        else:
            order = _descending(executed, ranks[query.function_order], instructions)
        return (
            tuple(
                FunctionRow(
                    number=n,
                    name=catalogue.functions[n].name,
                    module=catalogue.functions[n].module,
                    blocks=int(blocks[n]),
                    instructions=self._measure(int(instructions[n]), int(recent[n])),
                    simd=self._measure(int(vector[n]), int(recent_vector[n])),
                )
                for n in order[: query.rows].tolist()
            ),
            len(executed),
        )

    def _name(self, number: int) -> tuple[bool, str, str]:
        function = self._catalogue.functions[number]
        return not function.name, function.name, function.module

    def blocks(self, query: Query) -> tuple[tuple[BlockRow, ...], int]:
        """The first blocks (of the query's function, if it names one) in its order, and how
        many there are."""
        catalogue = self._catalogue
        parent = catalogue.parent
        wanted = np.arange(len(catalogue))
        if query.function is not None:
            wanted = np.flatnonzero(catalogue.function == query.function)

        def by_block(values: Ints) -> Ints:
            out = np.zeros(len(catalogue), np.int64)
            np.add.at(out, parent[wanted], values[wanted])
            return out

        times, recent_times = by_block(self._executions), by_block(self._recent)
        instructions = by_block(self._executions * catalogue.length)
        recent = by_block(self._recent * catalogue.length)
        executed = np.flatnonzero(instructions > 0)
        if query.block_order == "address":
            modules = [catalogue.raw[n].module for n in executed.tolist()]
            order = executed[np.lexsort((catalogue.place[executed], np.array(modules, object).astype(str)))]
        else:
            ranks = {
                "instructions": recent if query.by_rate else instructions,
                "executions": recent_times if query.by_rate else times,
            }
            order = _descending(executed, ranks[query.block_order], instructions)
        return (
            tuple(
                BlockRow(
                    number=n,
                    function=catalogue.functions[int(catalogue.function[n])].name,
                    module=module_of(catalogue, n),
                    offset=int(catalogue.place[n]),
                    length=int(catalogue.length[n]),
                    executions=self._measure(int(times[n]), int(recent_times[n])),
                    instructions=self._measure(int(instructions[n]), int(recent[n])),
                )
                for n in order[: query.rows].tolist()
            ),
            len(executed),
        )

    def listing(self, query: Query) -> tuple[Line, ...]:
        """The instructions of the query's block, or of all blocks of its function that ran,
        by address, each with how often it was executed."""
        catalogue = self._catalogue
        if query.block is not None:
            numbers = [query.block]
        elif query.function is not None and query.listing:
            whole = catalogue.parent == np.arange(len(catalogue))
            numbers = np.flatnonzero(whole & (catalogue.function == query.function)).tolist()
        else:
            return ()
        lines: dict[tuple[int, bytes], tuple[str, bool, int, int]] = {}
        for number in numbers:
            times, recent = int(self._executions[number]), int(self._recent[number])
            parts = [
                (k, int(self._executions[p]), int(self._recent[p]))
                for k, p in catalogue.prefixes.get(number, ())
            ]
            if not times and not any(part[1] for part in parts):
                continue
            for index, (place, code, text) in enumerate(catalogue.texts(number)):
                total = times + sum(n for k, n, _ in parts if k > index)
                lately = recent + sum(n for k, _, n in parts if k > index)
                before = lines.get((place, code), (text, False, 0, 0))
                first = before[1] or index == 0
                lines[place, code] = text, first, before[2] + total, before[3] + lately
            if len(lines) > MOST_LINES:
                break
        return tuple(
            Line(place, code, text, first, self._measure(total, lately))
            for (place, code), (text, first, total, lately) in sorted(lines.items(), key=lambda item: item[0])
        )


def module_of(catalogue: Catalogue, number: int) -> str:
    """The file that a block's code is mapped from, or who made it."""
    label = catalogue.raw[number].label
    return catalogue.raw[number].module if label is None else str(label.origin)


def _descending(found: Ints, rank: npt.NDArray[np.int64], second: Ints) -> Ints:
    out: Ints = found[np.lexsort((found, -second[found], -rank[found]))]
    return out
