"""From vectors to points of a space in which near means alike.

SimPoint's way (T. Sherwood, E. Perelman, G. Hamerly, B. Calder, "Automatically characterizing large
scale program behavior", ASPLOS 2002): each vector is divided by its sum, and projected to few
dimensions by a matrix of random numbers between -1 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livepro.simpoint.vectors import Floats, Source, Vectors

DIMENSIONS = 15
"""SimPoint's default (ASPLOS 2002, section 4.2)."""


def projected(vectors: Vectors, dimensions: int, seed: int) -> Floats:
    """The normalised vectors in `dimensions` dimensions (float64, N x D). Equal vectors give equal points.

    Where there are no more blocks than dimensions, they are not projected.
    """
    blocks = len(vectors.ids)
    if dimensions < blocks:
        matrix = np.random.Generator(np.random.PCG64(seed)).uniform(-1.0, 1.0, (blocks, dimensions))
    else:
        matrix = np.eye(blocks)
    instructions = vectors.instructions
    return vectors.times(matrix) / np.where(instructions > 0, instructions, 1.0)[:, None]


def standardised(source: Source) -> Floats:
    """The columns with mean 0 and deviation 1; those that never change are 0."""
    deviation = source.values.std(axis=0)
    values = source.values - source.values.mean(axis=0)
    out: Floats = values / np.where(deviation > 0, deviation, 1.0)
    out[:, deviation == 0] = 0.0
    return out


def points(vectors: Vectors | None, sources: Sequence[Source], dimensions: int, seed: int) -> Floats:
    """All sources side by side (float64, N x D), each with its weight's part in squared distances.

    The mean squared distance from the mean is made 1 in each source, before its weight; block
    vectors have weight 1. Vectors alone are left as they are.
    """
    parts = [] if vectors is None else [(projected(vectors, dimensions, seed), 1.0)]
    parts += [(standardised(source), source.weight) for source in sources if source.weight]
    if len(parts) == 1:
        return parts[0][0]
    scaled = []
    for part, weight in parts:
        spread = float(((part - part.mean(axis=0)) ** 2).sum(axis=1).mean())
        scaled.append(part * np.sqrt(weight / spread) if spread > 0 else part)
    return np.concatenate(scaled, axis=1)
