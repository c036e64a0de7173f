"""What each thread had executed at each snapshot of a run, and how much of it was SIMD."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livepro.model import BlockTable, RunResult, SnapshotThread


class ThreadRow(NamedTuple):
    """One thread at one snapshot; `simd` are its SIMD instructions by set, the most frequent first."""

    pid: int
    image: int
    tid: int
    name: str
    instructions: int
    rep_iterations: int
    simd: dict[str, int]


class SnapshotRow(NamedTuple):
    """One snapshot, `seconds` after the start of the run; all counts since the last of `resets` resets."""

    label: str
    seconds: float
    resets: int
    threads: tuple[ThreadRow, ...]

    @property
    def instructions(self) -> int:
        """Instructions of all threads."""
        return sum(thread.instructions for thread in self.threads)

    @property
    def simd(self) -> int:
        """SIMD instructions of all threads."""
        return sum(sum(thread.simd.values()) for thread in self.threads)


class _SimdOfBlocks:
    """SIMD instructions of each block of a table by set: worked out once, for snapshots are many."""

    def __init__(self, table: BlockTable) -> None:
        self.table = table
        sets = [i.simd.set if i.simd is not None else "" for i in table.instructions]
        self.names = sorted(set(sets) - {""})
        number = {name: n for n, name in enumerate(self.names)}
        self.set_of_form = np.array([number.get(name, -1) for name in sets], np.int64)
        per_block = np.zeros((len(table), len(self.names)), np.int64)
        kinds = self.set_of_form[table.form]
        block = np.repeat(np.arange(len(table)), table.length)
        simd = np.flatnonzero(kinds >= 0)
        np.add.at(per_block, (block[simd], kinds[simd]), 1)
        self.per_block = per_block

    def counts(self, thread: SnapshotThread) -> dict[str, int]:
        """Executions by set, the most frequent first."""
        out = thread.entries.astype(np.int64) @ self.per_block[thread.rows]
        for row, prefix, times in thread.partial.tolist():
            first = int(self.table.start[row])
            kinds = self.set_of_form[self.table.form[first : first + prefix]]
            np.add.at(out, kinds[kinds >= 0], times)
        found = {name: int(n) for name, n in zip(self.names, out.tolist(), strict=True) if n}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def instructions(self, thread: SnapshotThread) -> int:
        """Instructions executed."""
        lengths = self.table.length[thread.rows].astype(np.int64)
        whole: int = (thread.entries.astype(np.int64) @ lengths).item()
        return whole + sum(int(prefix * times) for _, prefix, times in thread.partial.tolist())


def rows(result: RunResult) -> list[SnapshotRow]:
    """The snapshots of a run, in order. Threads that had executed nothing are left out."""
    facts: dict[int, _SimdOfBlocks] = {}
    out = []
    for snapshot in result.snapshots:
        threads = []
        for thread in snapshot.threads:
            process = result.processes[thread.process]
            if thread.process not in facts:
                facts[thread.process] = _SimdOfBlocks(process.table)
            of = facts[thread.process]
            instructions = of.instructions(thread)
            if instructions:
                counts = process.threads[thread.thread]
                threads.append(
                    ThreadRow(
                        process.pid,
                        process.image,
                        counts.tid,
                        counts.name,
                        instructions,
                        thread.rep_iterations,
                        of.counts(thread),
                    )
                )
        out.append(SnapshotRow(snapshot.label, snapshot.seconds, snapshot.resets, tuple(threads)))
    return out
