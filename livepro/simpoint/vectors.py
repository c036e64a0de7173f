"""Interval vectors as they are clustered: from files of any tool, or from a thread that livepro counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.errors import LiveproError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


COMMON = 10.0
"""Metrics below so many per 1,000 instructions do not decide, as a rule."""


class Metric(NamedTuple):
    """Something counted per instruction; `group` says of what kind it is ("type", "SIMD" ...)."""

    name: str
    group: str


@dataclass(frozen=True)
class Blocks:
    """What is known of the B blocks of vectors, in the order of `Vectors.ids`.

    `address` (uint64, B), `function`, `module` and `offset` (uint64, B, from where the module is
    loaded) tell their places; `function` and `module` are empty where unknown.
    `density` (float64, B x M) says how many of a block's instructions, on average, each of the
    `metrics` counts: 0.25 where one of four does. `totals` (M) are the exact counts of the whole
    run. Vectors that come with addresses only have no metrics.
    """

    address: npt.NDArray[np.uint64]
    function: tuple[str, ...]
    module: tuple[str, ...]
    offset: npt.NDArray[np.uint64]
    metrics: tuple[Metric, ...]
    density: Floats
    totals: tuple[int, ...]


@dataclass(frozen=True)
class Vectors:
    """N basic block vectors, sparse, row after row (compressed sparse rows).

    `name` says where they come from. Interval `i` executed ``count[start[i]:start[i + 1]]``
    instructions (float64, exact below 2**53) in the blocks ``ids[column[start[i]:start[i + 1]]]``.
    `ids` (int64, ascending) are the block ids as the source numbers them, from 0 or 1 or with gaps.
    """

    name: str
    start: Ints
    column: Ints
    count: Floats
    ids: Ints
    blocks: Blocks | None = None

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def instructions(self) -> Floats:
        """Instructions of each interval (float64, N, whole numbers)."""
        behind = np.concatenate(([0.0], np.cumsum(self.count)))
        out: Floats = behind[self.start[1:]] - behind[self.start[:-1]]
        return out

    def row(self, interval: int) -> tuple[Ints, Floats]:
        """Columns and counts of one interval."""
        within = slice(int(self.start[interval]), int(self.start[interval + 1]))
        return self.column[within], self.count[within]

    def times(self, matrix: Floats) -> Floats:
        """The product of the vectors (N x B) and `matrix` (B x D): float64, N x D."""
        out = np.empty((len(self), matrix.shape[1]))
        for interval in range(len(self)):
            columns, counts = self.row(interval)
            out[interval] = counts @ matrix[columns]
        return out

    def total(self, weights: Floats | None = None) -> Floats:
        """Instructions in each block (float64, B), each interval taken as often as `weights` (N) says."""
        counts = self.count
        if weights is not None:
            counts = counts * np.repeat(weights, np.diff(self.start))
        return np.bincount(self.column, counts, minlength=len(self.ids)).astype(np.float64)


class Source(NamedTuple):
    """Numbers that describe the same intervals otherwise: N x M `values`, a column for each of `names`.

    `instructions` (float64, N) are those of each interval, None where they are not told. `counts` says
    that the values grow with them. `weight` is the part that the source has in distances, beside others: one
    of weight 0 is looked at in the proof only. A count below `common` per 1,000 instructions does not decide
    there: its relative error says little.
    """

    name: str
    names: tuple[str, ...]
    values: Floats
    instructions: Floats | None = None
    counts: bool = False
    weight: float = 1.0
    common: float = COMMON

    def rates(self, instructions: Floats | None) -> Source:
        """Counts divided by the intervals' instructions (those given, where it has none of its own)."""
        own = instructions if self.instructions is None else self.instructions
        if not self.counts or own is None:
            return self._replace(counts=False)
        return self._replace(values=self.values / np.where(own > 0, own, 1.0)[:, None], instructions=own)


def from_rows(
    rows: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]],
    name: str,
    blocks: Blocks | None = None,
    ids: Ints | None = None,
) -> Vectors:
    """Vectors from pairs of block ids and instruction counts, an interval each.

    `blocks` describes the blocks `ids` (ascending); without it, the ids are those met.
    """
    found = list(rows)
    start = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(i) for i, _ in found], out=start[1:])
    raw = np.concatenate([np.zeros(0, np.int64), *(i for i, _ in found)])
    count = np.concatenate([np.zeros(0), *(c.astype(np.float64) for _, c in found)])
    if ids is None:
        ids, column = np.unique(raw, return_inverse=True)
    else:
        column = np.searchsorted(ids, raw)
    return Vectors(name, start, column.astype(np.int64), count, ids, blocks)


def check_same_length(vectors: Vectors | None, sources: Sequence[Source]) -> int:
    """The number of intervals that all have. Raises LiveproError where they differ or are none."""
    lengths = [(s.name, len(s.values)) for s in sources]
    if vectors is not None:
        lengths.insert(0, (vectors.name, len(vectors)))
    first, number = lengths[0]
    for other, length in lengths[1:]:
        if length != number:
            raise LiveproError(
                f"{first} has {number} intervals, {other} has {length}.",
                "Put only files of the same run with the same interval size side by side.",
            )
    if number == 0:
        raise LiveproError(f"{first} has no interval.", "Measure with a smaller interval size.")
    return number
