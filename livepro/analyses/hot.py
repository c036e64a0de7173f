"""Where the instructions are executed: hottest blocks, functions and modules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.analyses.totals import executed
from livepro.model import BlockTable, ThreadCounts


class HotBlock(NamedTuple):
    """One block. `share` is its part (0 to 1) of all instructions that the threads executed.

    `entries` counts complete executions; `instructions` also what was executed
    of it when it was left early. `length` is its instructions.
    """

    id: int
    address: int
    function: str
    module: str
    offset: int
    length: int
    entries: int
    instructions: int
    share: float


class HotFunction(NamedTuple):
    """All executed blocks of one function; `function` is empty for code of a module without symbols."""

    function: str
    module: str
    blocks: int
    instructions: int
    share: float


class HotModule(NamedTuple):
    """All executed blocks of one module."""

    module: str
    blocks: int
    instructions: int
    share: float


def blocks(table: BlockTable, *threads: ThreadCounts, limit: int = 20) -> list[HotBlock]:
    """The `limit` blocks in which `threads` together executed most, the hottest first.

    Of equally hot blocks the one that ran first comes first. Blocks that did
    not run are left out.
    """
    counts = instructions(table, *threads)
    entries = np.zeros(len(table), np.uint64)
    for thread in threads:
        entries += thread.entries
    total = int(counts.sum())
    return [
        HotBlock(
            id=row + 1,
            address=int(table.address[row]),
            function=table.function[row],
            module=table.module[row],
            offset=int(table.offset[row]),
            length=int(table.length[row]),
            entries=int(entries[row]),
            instructions=int(counts[row]),
            share=int(counts[row]) / total,
        )
        for row in _top(counts, limit)
    ]


def functions(table: BlockTable, *threads: ThreadCounts, limit: int = 20) -> list[HotFunction]:
    """The `limit` functions in which `threads` together executed most, the hottest first."""
    return [
        HotFunction(function, module, n, count, share)
        for (function, module), n, count, share in _groups(table, threads, by_function=True)[:limit]
    ]


def modules(table: BlockTable, *threads: ThreadCounts) -> list[HotModule]:
    """All modules that `threads` executed code of, the hottest first."""
    return [
        HotModule(module, n, count, share)
        for (_, module), n, count, share in _groups(table, threads, by_function=False)
    ]


def instructions(table: BlockTable, *threads: ThreadCounts) -> npt.NDArray[np.uint64]:
    """Instructions that `threads` together executed in each block (uint64, B)."""
    out = np.zeros(len(table), np.uint64)
    for thread in threads:
        out += thread.block_instructions(table)
    return out


def _top(counts: npt.NDArray[np.uint64], limit: int) -> list[int]:
    """Rows of the `limit` greatest counts above 0, greatest first, lower rows first among equals."""
    limit = min(limit, int(np.count_nonzero(counts)))
    if limit <= 0:
        return []
    # Partition instead of sorting all: every row at or above the limit-th greatest is a candidate.
    least = np.partition(counts, len(counts) - limit)[len(counts) - limit]
    rows = np.flatnonzero(counts >= least)
    order = np.argsort(np.iinfo(np.uint64).max - counts[rows], kind="stable")
    return [int(r) for r in rows[order[:limit]]]


def _groups(
    table: BlockTable, threads: tuple[ThreadCounts, ...], by_function: bool
) -> list[tuple[tuple[str, str], int, int, float]]:
    """((function, module), blocks, instructions, share) of each group of blocks, the hottest first."""
    counts = instructions(table, *threads)
    ran = np.zeros(len(table), np.bool_)
    for thread in threads:
        ran |= executed(thread)
    rows = np.flatnonzero(ran)
    number: dict[tuple[str, str], int] = {}
    group = np.array(
        [
            number.setdefault((table.function[r] if by_function else "", table.module[r]), len(number))
            for r in rows.tolist()
        ],
        np.intp,
    )
    sums = np.zeros(len(number), np.uint64)
    np.add.at(sums, group, counts[rows])
    sizes = np.bincount(group, minlength=len(number))
    total = int(counts.sum())
    out = [(key, int(sizes[n]), int(sums[n]), int(sums[n]) / total) for key, n in number.items()]
    return sorted(out, key=lambda g: -g[2])
