"""Sums over blocks: totals, and what came in the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from livepro.live.catalogue import Catalogue, Ints

WINDOW = 2.0
"""Seconds over which rates are taken."""

_NONE: Ints = np.zeros(0, np.int64)


def join(parts: Sequence[Ints]) -> Ints:
    """The parts, one behind the other."""
    return np.concatenate(parts) if parts else _NONE


class Recent:
    """What was executed in the last `WINDOW` seconds: samples of (seconds, instructions, SIMD
    instructions, block numbers, executions)."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int, int, Ints, Ints]] = deque()

    def add(self, seconds: float, instructions: int, simd: int, numbers: Ints, times: Ints) -> None:
        """A sample of the last `seconds`."""
        samples = self._samples
        samples.append((seconds, instructions, simd, numbers, times))
        while len(samples) > 1 and sum(sample[0] for sample in samples) - samples[0][0] >= WINDOW:
            samples.popleft()

    def clear(self) -> None:
        """Forget the samples."""
        self._samples.clear()

    def rates(self) -> tuple[float, float]:
        """Instructions and SIMD instructions a second."""
        seconds = self.seconds
        if not seconds:
            return 0.0, 0.0
        return (
            max(0.0, sum(s[1] for s in self._samples) / seconds),
            max(0.0, sum(s[2] for s in self._samples) / seconds),
        )

    @property
    def seconds(self) -> float:
        """How long the samples are together."""
        return sum(sample[0] for sample in self._samples)

    def executions(self, blocks: int) -> Ints:
        """Executions of each of `blocks` blocks (int64)."""
        out = np.zeros(blocks, np.int64)
        for _, _, _, numbers, times in self._samples:
            np.add.at(out, numbers, times)
        return out

    def copy(self) -> Recent:
        """The same samples."""
        out = Recent()
        out._samples = self._samples.copy()
        return out


class Sum:
    """What some threads executed together: by block (int64, `executions`) and by feature
    (int64, `features`), as the catalogue numbers them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._executions = np.zeros(1024, np.int64)
        self._features = np.zeros(64, np.int64)

    def add(self, numbers: Ints, times: Ints) -> None:
        """Add executions of blocks; numbers can repeat."""
        blocks, columns = len(self._catalogue), len(self._catalogue.features)
        while len(self._executions) < blocks:
            self._executions = np.concatenate((self._executions, np.zeros_like(self._executions)))
        while len(self._features) < columns:
            self._features = np.concatenate((self._features, np.zeros_like(self._features)))
        if len(numbers):
            numbers, times = gathered(numbers, times, blocks)
            self._executions[numbers] += times
            self._features[:columns] += times @ self._catalogue.of(numbers)

    @property
    def executions(self) -> Ints:
        return self._executions[: len(self._catalogue)]

    @property
    def features(self) -> Ints:
        return self._features[: len(self._catalogue.features)]


def gathered(numbers: Ints, times: Ints, blocks: int) -> tuple[Ints, Ints]:
    """The same with each number once (ascending), those that cancel out left out."""
    dense = np.zeros(blocks, np.int64)
    np.add.at(dense, numbers, times)
    found = np.flatnonzero(dense)
    return found, dense[found]
