"""A run over time: how fast it went, and in which phase it was.

`livepro.analyses.phases` says what a phase is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from livepro.analyses.phases import PhaseFinder
from livepro.model.live import Moment

KEPT = 512
"""Moments kept; when there are more, pairs of neighbours become one."""


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
        self._phases = PhaseFinder()
        self._stretches: list[_Stretch] = []
        self._resolution = 1  # samples that make a stretch
        self._last = 0  # samples in the last one
        self._samples = 0

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
        self._samples += 1
        phase = self._phases.phase(blocks, weights)
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

    @property
    def samples(self) -> int:
        """How often something was added."""
        return self._samples

    def correct(self, sample: int, simd: int) -> None:
        """SIMD instructions of the sample with that number (from 0), found out later."""
        if sample < self._samples:
            self._stretches[sample // self._resolution].simd += simd

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
