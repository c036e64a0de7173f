"""Phases of a run: stretches in which the same code runs.

Moments are of one phase if their basic block vectors are alike, as SimPoint takes it
(Sherwood et al., ASPLOS 2002), only found as they come: a moment belongs to the nearest
phase known, or begins a new one if none is near.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BUCKETS = 256
"""Dimensions that block vectors are folded into."""

NEAR = 0.7
"""Manhattan distance (0: the same code in the same parts, 2: nothing in common) within
which moments are of one phase."""

MOST = 26
"""Phases told apart: as many as there are letters."""

_MIXER = 0x9E3779B97F4A7C15  # Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4)


class PhaseFinder:
    """Numbers the phases of the moments that it is shown, one after the other."""

    def __init__(self) -> None:
        self._centres: list[npt.NDArray[np.float64]] = []

    def phase(
        self, blocks: npt.NDArray[np.int64], weights: npt.NDArray[np.int64] | npt.NDArray[np.uint64]
    ) -> int | None:
        """The phase (from 0) of a moment with `weights` instructions in each of `blocks` (numbers
        that stay the blocks' own); None where nothing was executed."""
        total = int(weights.sum())
        if total <= 0:
            return None
        bucket = (blocks.astype(np.uint64) * np.uint64(_MIXER)) >> np.uint64(56)
        vector = np.bincount(bucket.astype(np.int64), weights.astype(np.float64), BUCKETS) / total
        if self._centres:
            distances = [float(np.abs(vector - centre).sum()) for centre in self._centres]
            best = int(np.argmin(distances))
            if distances[best] <= NEAR or len(self._centres) == MOST:
                self._centres[best] += (vector - self._centres[best]) * 0.1
                return best
        self._centres.append(vector)
        return len(self._centres) - 1
