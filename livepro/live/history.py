"""A run over time: how fast it went, and in which phase it was.

A phase is a stretch in which the same code runs: moments whose basic block
vectors are alike, as SimPoint takes it (Sherwood et al., ASPLOS 2002), only
found as they come: a moment belongs to the nearest phase known, or begins a
new one if none is near.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from livepro.model.live import Moment

BUCKETS = 256
"""Dimensions that block vectors are folded into."""

NEAR = 0.7
"""Manhattan distance (0: the same code in the same parts, 2: nothing in common) within
which moments are of one phase."""

MOST = 26
"""Phases told apart: as many as there are letters."""

KEPT = 512
"""Moments kept; when there are more, pairs of neighbours become one."""

_MIXER = 0x9E3779B97F4A7C15  # Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4)


@dataclass
class _Stretch:
    seconds: float = 0.0
    instructions: int = 0
    simd: int = 0
    phases: Counter[int] = field(default_factory=Counter)

    def add(self, other: _Stretch) -> None:
        self.seconds += other.seconds
        self.instructions += other.instructions
        self.simd += other.simd
        self.phases.update(other.phases)

    def moment(self) -> Moment:
        phase = self.phases.most_common(1)[0][0] if self.phases else None
        return Moment(self.seconds, self.instructions, self.simd, phase)


class History:
    """The moments of a run, all of about the same length, at most `KEPT`."""

    def __init__(self) -> None:
        self._centres: list[npt.NDArray[np.float64]] = []
        self._stretches: list[_Stretch] = []
        self._resolution = 1  # samples that make a stretch
        self._last = 0  # samples in the last one

    def clear(self) -> None:
        """Forget everything."""
        self.__init__()  # type: ignore[misc]

    def add(
        self,
        seconds: float,
        instructions: int,
        simd: int,
        blocks: npt.NDArray[np.int64],
        weights: npt.NDArray[np.int64],
    ) -> None:
        """What was executed in the `seconds` since the last time: `weights` (int64) are the
        instructions in each of `blocks` (int64, block numbers)."""
        phase = self._phase(blocks, weights)
        stretch = _Stretch(seconds, instructions, simd)
        if phase is not None:
            stretch.phases[phase] = max(instructions, 1)
        if not self._stretches or self._last == self._resolution:
            self._stretches.append(stretch)
            self._last = 1
        else:
            self._stretches[-1].add(stretch)
            self._last += 1
        if len(self._stretches) > KEPT:
            self._halve()

    def moments(self) -> tuple[Moment, ...]:
        """The moments so far, the oldest first."""
        return tuple(stretch.moment() for stretch in self._stretches)

    def _halve(self) -> None:
        pairs = self._stretches
        for first, second in zip(pairs[::2], pairs[1::2], strict=False):
            first.add(second)
        if len(pairs) % 2 == 0:
            self._last += self._resolution
        self._stretches = pairs[::2]
        self._resolution *= 2

    def _phase(self, blocks: npt.NDArray[np.int64], weights: npt.NDArray[np.int64]) -> int | None:
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
