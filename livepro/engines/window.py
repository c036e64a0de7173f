"""Which part of a thread's execution counts: what resets and pauses leave out, and what snapshots take.

A thread's counts only ever grow. A reset remembers what they were, a pause and
the resume behind it add what grew in between, and the report subtracts. So
nothing that counts has to be stopped, changed or cleared, and no instruction is
lost or counted twice: each belongs to one side of the moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.alike import Alike

Partial = Mapping[tuple[int, int], int]
"""(block, k) -> executions of a block's first k instructions only."""

_NONE = np.zeros(0, np.int64)


class Position(NamedTuple):
    """Where a thread is: it has executed the first `executed` instructions of block `row`, of
    which `charged` (none, or all of them) are in its counts already. `iterations` have been
    counted for a rep-prefixed instruction that has them yet to do; `owed` instructions of
    those charged have yet to be taken from an interval's budget."""

    row: int
    executed: int
    charged: int
    length: int
    iterations: int = 0
    owed: int = 0


BETWEEN = Position(0, 0, 0, 0)
"""At a boundary between blocks."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What one thread had executed at some moment, by the engine's block numbers.

    `rows` (int64, ascending) are the blocks that it has run, `times` (int64)
    how often as a whole. An execution of which only the end belongs to the
    counts is one in `times` and minus one in `partial` for its beginning.
    """

    rows: npt.NDArray[np.int64] = field(default_factory=lambda: _NONE)
    times: npt.NDArray[np.int64] = field(default_factory=lambda: _NONE)
    partial: Partial = field(default_factory=dict)
    rep_iterations: int = 0

    @classmethod
    def of(cls, entries: Mapping[int, int], partial: Partial, rep_iterations: int) -> Counts:
        """From dictionaries, as a tally keeps them."""
        rows = np.array(sorted(row for row, times in entries.items() if times), np.int64)
        times = np.array([entries[row] for row in rows.tolist()], np.int64)
        return cls(rows, times, {key: n for key, n in partial.items() if n}, rep_iterations)

    @classmethod
    def dense(cls, entries: npt.NDArray[np.int64], partial: Partial, rep_iterations: int) -> Counts:
        """From an array by block number."""
        rows = np.flatnonzero(entries)
        return cls(rows, entries[rows], {key: n for key, n in partial.items() if n}, rep_iterations)

    def shared(self, alike: Alike) -> Counts:
        """The same, its arrays in common with others that are equal."""
        return replace(self, rows=alike.of_array(self.rows), times=alike.of_array(self.times))

    def plus(self, other: Counts, sign: int = 1) -> Counts:
        """The sum, or with `sign` -1 the difference."""
        size = max((int(rows[-1]) + 1 for rows in (self.rows, other.rows) if len(rows)), default=0)
        entries = np.zeros(size, np.int64)
        entries[self.rows] += self.times
        entries[other.rows] += sign * other.times
        partial = dict(self.partial)
        for key, times in other.partial.items():
            partial[key] = partial.get(key, 0) + sign * times
        return Counts.dense(entries, partial, self.rep_iterations + sign * other.rep_iterations)

    def minus(self, other: Counts) -> Counts:
        """What has come since `other`."""
        return self.plus(other, -1)

    def at(self, position: Position) -> Counts:
        """With the block that the thread is in counted as far as it has been executed."""
        row, executed, charged, length, iterations, _ = position
        whole = (executed == length) - (charged > 0)
        partial = {(row, executed): 1} if 0 < executed < length else {}
        entries = {row: whole} if executed or charged else {}
        return self.plus(Counts.of(entries, partial, -iterations))

    def instructions(self, lengths: Sequence[int] | npt.NDArray[np.int64]) -> int:
        """Instructions, given how many each block has."""
        if isinstance(lengths, np.ndarray):
            whole = int(self.times @ lengths[self.rows])
        else:
            whole = sum(
                n * lengths[row] for row, n in zip(self.rows.tolist(), self.times.tolist(), strict=True)
            )
        return whole + sum(k * n for (_, k), n in self.partial.items())

    def renamed(self, former: npt.NDArray[np.int64]) -> Counts:
        """The same with other block numbers: n is what was `former[n]` (ascending)."""
        return Counts(
            np.searchsorted(former, self.rows),
            self.times,
            {(int(np.searchsorted(former, row)), k): n for (row, k), n in self.partial.items()},
            self.rep_iterations,
        )


NOTHING = Counts()


class Vectors(Protocol):
    """What cuts a thread's basic block vectors. The thread stands still, where `position` says."""

    def restart(self, position: Position) -> None:
        """Forget the intervals; the first begins here."""

    def freeze(self, position: Position) -> None:
        """What follows belongs to no interval."""

    def thaw(self, position: Position) -> None:
        """The interval that was interrupted goes on here."""


@dataclass(slots=True)
class Window:
    """What of a thread's counts is to be left out: `base`, and, while counting is paused,
    what has come since `held`. `over` says that the thread ended before the last reset."""

    base: Counts = NOTHING
    held: Counts | None = None
    over: bool = False

    def reset(self, now: Counts) -> None:
        """Leave out all there has been."""
        self.base = now
        if self.held is not None:
            self.held = now

    def pause(self, now: Counts) -> None:
        """Leave out what follows."""
        self.held = now

    def resume(self, now: Counts) -> None:
        """Count what follows."""
        if self.held is not None:
            self.base = self.base.plus(now.minus(self.held))
            self.held = None

    def counted(self, now: Counts) -> Counts:
        """What belongs to the report."""
        return (now if self.held is None else self.held).minus(self.base)

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.base is NOTHING and self.held is None
