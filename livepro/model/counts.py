"""What one thread executed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.model.blocks import BlockTable


class Interval(NamedTuple):
    """One interval of a thread's basic block vectors.

    `instructions` is what the thread retired in it, `rows` (int64) the table
    rows of the blocks that ran, ascending, and `counts` (uint64, same shape)
    how many instructions were executed in each: they sum to `instructions`.
    """

    instructions: int
    rows: npt.NDArray[np.int64]
    counts: npt.NDArray[np.uint64]


class ThreadCounts(NamedTuple):
    """How often one thread ran each block of its process's table.

    `entries` (uint64, B) counts complete executions. `partial` (int64, P x 3)
    has a row (table row, k, times) for executions that left the block after
    its first k instructions (0 < k < length); times below 0 take the first k
    instructions of complete executions off again, which began before a
    reset or in a pause. `rep_iterations` counts the
    iterations of rep-prefixed instructions (each such instruction is one
    instruction however often it iterates). `intervals` are the basic block
    vectors, in order, the last one possibly short; empty when none were asked
    for.
    """

    tid: int
    name: str
    entries: npt.NDArray[np.uint64]
    partial: npt.NDArray[np.int64]
    rep_iterations: int
    intervals: tuple[Interval, ...] = ()

    def executions(self, table: BlockTable) -> npt.NDArray[np.uint64]:
        """Executions of each instruction of each block (uint64, like `table.form`)."""
        out = np.repeat(self.entries.astype(np.int64), table.length)
        for row, prefix, times in self.partial.tolist():
            first = int(table.start[row])
            out[first : first + prefix] += times
        return out.astype(np.uint64)

    def form_counts(self, table: BlockTable) -> npt.NDArray[np.uint64]:
        """Executions of each distinct encoding (uint64, one per `table.instructions`)."""
        out = np.zeros(len(table.instructions), np.uint64)
        np.add.at(out, table.form, self.executions(table))
        return out

    def block_instructions(self, table: BlockTable) -> npt.NDArray[np.uint64]:
        """Instructions executed in each block (uint64, B)."""
        out = self.entries.astype(np.int64) * table.length
        for row, prefix, times in self.partial.tolist():
            out[row] += prefix * times
        return out.astype(np.uint64)

    def instructions(self, table: BlockTable) -> int:
        """Instructions that the thread retired."""
        return int(self.block_instructions(table).sum())
