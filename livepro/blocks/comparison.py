"""The exact and the sampled answer for one program, side by side.

Both are brought to the same blocks: those of the exact run. A sample's block is the one
that holds its own block's first address in the same module.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.blocks.rows import BlockRow

HOTTEST = 10


class Pair(NamedTuple):
    """A block or function: its part (0 to 1) of all instructions executed, and of all samples."""

    name: str
    module: str
    exact: float
    sampled: float


class Comparison(NamedTuple):
    """What sampling saw of a run.

    `blocks` and `functions` are in order of their exact share. `correlation` is Spearman's
    rank correlation of the two shares over all executed blocks (NaN where there are fewer than
    two), `function_correlation` over functions. `missed` is the part of all instructions executed in
    blocks that no sample met, `missed_blocks` their number. `exact_hottest` and
    `sampled_hottest` are the parts of all instructions, and of all samples, in the ten blocks that
    are hottest by the exact counts; `common` of these are also among the ten with most samples.
    """

    blocks: list[Pair]
    functions: list[Pair]
    correlation: float
    function_correlation: float
    missed: float
    missed_blocks: int
    exact_hottest: float
    sampled_hottest: float
    common: int


def compare(exact: Sequence[BlockRow], sampled: Sequence[BlockRow]) -> Comparison:
    """Compare the rows of an exact run with those of a sampled one."""
    blocks = _paired(exact, sampled)
    functions = _by_function(exact, sampled)
    by_samples = sorted(blocks, key=lambda p: -p.sampled)[:HOTTEST]
    top = blocks[:HOTTEST]
    return Comparison(
        blocks=blocks,
        functions=functions,
        correlation=_rank_correlation(blocks),
        function_correlation=_rank_correlation(functions),
        missed=sum(p.exact for p in blocks if not p.sampled),
        missed_blocks=sum(not p.sampled for p in blocks),
        exact_hottest=sum(p.exact for p in top),
        sampled_hottest=sum(p.sampled for p in top),
        common=sum(p in by_samples for p in top),
    )


def _paired(exact: Sequence[BlockRow], sampled: Sequence[BlockRow]) -> list[Pair]:
    modules: dict[str, list[BlockRow]] = {}
    for row in sorted(exact, key=lambda row: row.address):
        modules.setdefault(row.module, []).append(row)
    samples: dict[tuple[str, int], float] = {}
    for row in sampled:
        own = modules.get(row.module, [])
        at = bisect_right(own, row.address, key=lambda r: r.address) - 1
        if at >= 0 and row.address < own[at].address + own[at].size:
            key = row.module, own[at].address
            samples[key] = samples.get(key, 0.0) + (row.time_share or 0.0)
    pairs = [
        Pair(row.name, row.module, row.time_share or 0.0, samples.get((row.module, row.address), 0.0))
        for row in exact
    ]
    return sorted(pairs, key=lambda p: -p.exact)


def _by_function(exact: Sequence[BlockRow], sampled: Sequence[BlockRow]) -> list[Pair]:
    shares: dict[tuple[str, str], list[float]] = {}
    for which, rows in enumerate((exact, sampled)):
        for row in rows:
            shares.setdefault((row.function, row.module), [0.0, 0.0])[which] += row.time_share or 0.0
    pairs = [Pair(name, module, *parts) for (name, module), parts in shares.items()]
    return sorted(pairs, key=lambda p: -p.exact)


def _rank_correlation(pairs: Sequence[Pair]) -> float:
    """Spearman's coefficient, equal values sharing their mean rank."""
    if len(pairs) < 2:
        return float("nan")
    one, other = (_ranks(np.array([pair[i] for pair in pairs])) for i in (2, 3))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(times)
    mean: npt.NDArray[np.float64] = (last - (times - 1) / 2).astype(np.float64)
    return mean[place]
