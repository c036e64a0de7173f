"""What each phase is: where it executes, and what kind of instructions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livepro.simpoint.counted import SIMD, TYPE
from livepro.simpoint.study import Study
from livepro.simpoint.vectors import Floats


class Phase(NamedTuple):
    """A phase from 0, in order of first appearance: its `share` of the weights (0 to 1), how many
    `intervals`, its point's `interval` (None where the coverage leaves it out), its hottest `functions`
    with their part of its instructions, its SIMD instructions and its instruction types (the most
    frequent first), per 1,000. `simd` is None where no types are known."""

    number: int
    share: float
    intervals: int
    interval: int | None
    functions: tuple[tuple[str, float], ...]
    simd: float | None
    types: tuple[tuple[str, float], ...]


def phases(found: Study, functions: int = 3) -> list[Phase]:
    """Every phase of a study, in order of number."""
    labels = found.choice.clustering.labels
    represented = {point.phase: point.interval for point in found.choice.points}
    out = []
    for number in range(found.choice.k):
        members = (labels == number).astype(np.float64) * found.weights
        if not members.any():
            continue
        metrics = found.prover.phase(members)
        types = [(m.name, value) for m, value in metrics.items() if m.group == TYPE and value > 0]
        simd = [value for m, value in metrics.items() if (m.group, m.name) == (SIMD, "SIMD")]
        known = any(m.group == TYPE for m in metrics)
        out.append(
            Phase(
                number=number,
                share=float(members.sum() / found.weights.sum()),
                intervals=int((labels == number).sum()),
                interval=represented.get(number),
                functions=tuple(_functions(found, (labels == number).astype(np.float64))[:functions]),
                simd=(sum(simd) if known else None),
                types=tuple(sorted(types, key=lambda item: -item[1])),
            )
        )
    return out


def _functions(found: Study, members: Floats) -> list[tuple[str, float]]:
    """Functions of the member intervals by their part of the instructions, the hottest first. Blocks of
    no known function stand for themselves: ``gzip+0x5f20``."""
    vectors = found.vectors
    if vectors is None or vectors.blocks is None:
        return []
    counts = vectors.total(members)
    sums: dict[str, float] = {}
    blocks = vectors.blocks
    for row in np.flatnonzero(counts).tolist():
        module = blocks.module[row].rpartition("/")[2]
        name = blocks.function[row]
        if not name:
            name = f"{module}+{blocks.offset[row]:#x}" if module else f"{blocks.address[row]:#x}"
        sums[name] = sums.get(name, 0.0) + float(counts[row])
    whole = sum(sums.values())
    return sorted(((name, part / whole) for name, part in sums.items()), key=lambda item: -item[1])
