"""Runs made up of phases that are known: what the choice of points must find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livepro.simpoint import Vectors, from_rows


def vectors(
    sequence: Sequence[int], size: int = 1000, noise: float = 0.0, seed: int = 0, blocks: int = 40
) -> Vectors:
    """An interval of about `size` instructions for each phase number in `sequence`.

    Phase p runs `blocks` blocks of its own with counts of its own, and a block that all run; with
    `noise` each count varies by that part.
    """
    random = np.random.default_rng(seed)
    rows = []
    for phase in sequence:
        own = np.random.default_rng(1000 + phase)
        ids = np.array([1, *range(2 + phase * blocks, 2 + (phase + 1) * blocks)], np.int64)
        counts = own.integers(1, 2 * size // blocks, len(ids)).astype(np.float64)
        counts *= 1 + noise * random.uniform(-1, 1, len(ids))
        rows.append((ids, np.maximum(1, counts).astype(np.uint64)))
    return from_rows(rows, "synthetic")
