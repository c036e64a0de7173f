"""A thread's intervals as a line over its instructions: how much SIMD, and which phase."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from livepro.analyses.functions import simd_positions
from livepro.analyses.phases import PhaseFinder
from livepro.model import BlockTable, ProcessResult

MOST = 1000
"""Moments that a thread has at most; where it has more intervals, neighbours are joined."""


class MomentRow(NamedTuple):
    """One interval, or several that follow each other: instructions, SIMD instructions among them
    (of blocks left early a part), and the phase (from 0, the same for all threads of a process)
    that most of it is of."""

    instructions: int
    simd: int
    phase: int


def moments(process: ProcessResult) -> list[list[MomentRow]]:
    """The moments of each thread of a process, none for threads without intervals."""
    density = simd_density(process.table) if any(t.intervals for t in process.threads) else None
    finder = PhaseFinder()
    out = []
    for thread in process.threads:
        rows = []
        for interval in thread.intervals:
            assert density is not None
            simd = round(float(interval.counts.astype(np.float64) @ density[interval.rows]))
            phase = finder.phase(interval.rows, interval.counts)
            rows.append(MomentRow(interval.instructions, simd, -1 if phase is None else phase))
        out.append(_joined(rows))
    return out


def simd_density(table: BlockTable) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The part (0 to 1) of each block's instructions that are SIMD instructions (float64, B)."""
    sums = np.concatenate(([0], np.cumsum(simd_positions(table))))
    per_block = sums[table.start[1:]] - sums[table.start[:-1]]
    return per_block / np.maximum(table.length, 1)


def _joined(rows: list[MomentRow]) -> list[MomentRow]:
    width = -(-len(rows) // MOST)
    if width <= 1:
        return rows
    return [_sum(rows[n : n + width]) for n in range(0, len(rows), width)]


def _sum(rows: list[MomentRow]) -> MomentRow:
    weights: Counter[int] = Counter()
    for row in rows:
        weights[row.phase] += row.instructions
    return MomentRow(
        sum(r.instructions for r in rows), sum(r.simd for r in rows), weights.most_common(1)[0][0]
    )
