"""Who made the code that was executed: compilers, interpreter and stubs of a virtual machine, or nobody.

Every block belongs to one group, so groups sum to the whole, in every column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.analyses.totals import executed
from livepro.model import BlockTable, CodeLabel, Interval, Origin, RunResult, SnapshotThread, ThreadCounts

COMPILED = (Origin.C1, Origin.C2)
"""Origins that have a tier, and a Java method that was compiled."""

TIERS = {"c1": (1, 2, 3), "c2": (4,), "1": (1,), "2": (2,), "3": (3,), "4": (4,)}
"""Names of tiers, as `--tier` takes them."""

_NATIVE = CodeLabel(Origin.NATIVE)
_FILTERED = "Only {} is counted here; rep iterations are not known by block and left out."


class OriginRow(NamedTuple):
    """What was executed of code of one origin (and tier, 0 where there is none): instructions,
    SIMD instructions among them, distinct blocks."""

    origin: str
    tier: int
    instructions: int
    simd: int
    blocks: int


class MethodRow(NamedTuple):
    """What was executed of one Java method's code of one origin and tier. `method` is as
    ``java.lang.String.hashCode()I``."""

    method: str
    origin: str
    tier: int
    instructions: int
    simd: int
    blocks: int


def origins(table: BlockTable, *threads: ThreadCounts) -> list[OriginRow]:
    """A row per origin and tier that `threads` together executed code of, the hottest first.

    Code of a process without a virtual machine is all native.
    """
    return [
        OriginRow(str(key.origin), key.tier, *sums)
        for key, sums in _sums(table, threads, lambda label: label._replace(name=""))
    ]


def methods(table: BlockTable, *threads: ThreadCounts, limit: int | None = None) -> list[MethodRow]:
    """A row per Java method, origin and tier that `threads` together executed compiled code (or a
    native wrapper) of, the hottest first; at most `limit` (None: all)."""
    java = (*COMPILED, Origin.WRAPPER)
    rows = [
        MethodRow(key.name, str(key.origin), key.tier, *sums)
        for key, sums in _sums(table, threads, lambda label: label)
        if key.origin in java
    ]
    return rows[:limit]


def labels(table: BlockTable) -> tuple[CodeLabel, ...]:
    """The label of every block of a table."""
    return table.label if table.label is not None else (_NATIVE,) * len(table)


def restricted(thread: ThreadCounts, blocks: npt.NDArray[np.bool_]) -> ThreadCounts:
    """What a thread executed of some blocks (bool, B), everything else taken for not executed.

    Rep iterations are not known by block: 0. Intervals keep their places in the thread's
    whole instruction stream, and what they have of these blocks.
    """
    return thread._replace(
        entries=np.where(blocks, thread.entries, np.uint64(0)),
        partial=thread.partial[blocks[thread.partial[:, 0]]],
        rep_iterations=0,
        intervals=tuple(_interval(interval, blocks) for interval in thread.intervals),
    )


def only(result: RunResult, wanted: Callable[[CodeLabel], bool], what: str) -> RunResult:
    """A run with nothing counted but the blocks whose label is `wanted`; a warning says so, calling
    them `what`."""
    masks = [np.array([wanted(label) for label in labels(p.table)], np.bool_) for p in result.processes]
    return replace(
        result,
        processes=tuple(
            replace(process, threads=tuple(restricted(thread, blocks) for thread in process.threads))
            for process, blocks in zip(result.processes, masks, strict=True)
        ),
        snapshots=tuple(
            snapshot._replace(threads=tuple(_snapshot(t, masks[t.process]) for t in snapshot.threads))
            for snapshot in result.snapshots
        ),
        warnings=(*result.warnings, _FILTERED.format(what)),
    )


def tier_wanted(names: Iterable[str]) -> Callable[[CodeLabel], bool]:
    """A choice for `only`: code compiled in one of the tiers named (see TIERS)."""
    tiers = {tier for name in names for tier in TIERS[name]}
    return lambda label: label.origin in COMPILED and label.tier in tiers


def compiled(label: CodeLabel) -> bool:
    """A choice for `only`: code that C1 or C2 made."""
    return label.origin in COMPILED


def _snapshot(thread: SnapshotThread, blocks: npt.NDArray[np.bool_]) -> SnapshotThread:
    kept = blocks[thread.rows]
    return thread._replace(
        rows=thread.rows[kept],
        entries=thread.entries[kept],
        partial=thread.partial[blocks[thread.partial[:, 0]]],
        rep_iterations=0,
    )


def _interval(interval: Interval, blocks: npt.NDArray[np.bool_]) -> Interval:
    kept = blocks[interval.rows]
    counts = interval.counts[kept]
    return Interval(int(counts.sum()), interval.rows[kept], counts)


def _sums(
    table: BlockTable, threads: tuple[ThreadCounts, ...], key: Callable[[CodeLabel], CodeLabel]
) -> Iterator[tuple[CodeLabel, tuple[int, int, int]]]:
    """(group, (instructions, SIMD instructions, blocks)) of each group of blocks, the hottest first."""
    number: dict[CodeLabel, int] = {}
    of_label: dict[CodeLabel, int] = {}
    group = np.zeros(len(table), np.intp)
    for row, label in enumerate(labels(table)):
        if label not in of_label:
            of_label[label] = number.setdefault(key(label), len(number))
        group[row] = of_label[label]
    instructions = np.zeros(len(number), np.uint64)
    simd = np.zeros(len(number), np.uint64)
    ran = np.zeros(len(table), np.bool_)
    is_simd = np.array([i.simd is not None for i in table.instructions], np.bool_)[table.form]
    group_of_simd = np.repeat(group, table.length)[is_simd]
    for thread in threads:
        np.add.at(instructions, group, thread.block_instructions(table))
        np.add.at(simd, group_of_simd, thread.executions(table)[is_simd])
        ran |= executed(thread)
    blocks = np.bincount(group[ran], minlength=len(number))
    found = [
        (label, (int(instructions[n]), int(simd[n]), int(blocks[n])))
        for label, n in number.items()
        if instructions[n]
    ]
    return iter(sorted(found, key=lambda item: -item[1][0]))
