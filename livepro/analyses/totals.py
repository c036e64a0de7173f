"""Instruction totals of a thread, a process and a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.model import BlockTable, ProcessResult, ThreadCounts
from livepro.model.arrays import distinct


class Totals(NamedTuple):
    """What was executed, in numbers.

    `rep_instructions` counts each execution of a rep-prefixed instruction
    once, `rep_iterations` its iterations; `distinct_reps` is the number of
    different addresses of executed rep instructions. `fldcw` counts the FLDCW
    instructions (which some processors retire as two). `blocks` is the number
    of different blocks of which at least one instruction was executed.
    """

    instructions: int
    rep_instructions: int
    rep_iterations: int
    distinct_reps: int
    fldcw: int
    blocks: int


class StaticFacts:
    """What `Totals` needs to know of a table, worked out once for all its threads."""

    def __init__(self, table: BlockTable) -> None:
        self.table = table
        rep = np.array([i.rep for i in table.instructions], np.bool_)
        fldcw = np.array([i.opcode == "FLDCW" for i in table.instructions], np.bool_)
        self.rep_at: npt.NDArray[np.intp] = np.flatnonzero(rep[table.form])
        """Positions in `table.form` that hold a rep instruction."""
        self.rep_address = _addresses(table, self.rep_at)
        self.fldcw_at: npt.NDArray[np.intp] = np.flatnonzero(fldcw[table.form])
        """Positions in `table.form` that hold a FLDCW."""

    def totals(self, thread: ThreadCounts) -> tuple[Totals, npt.NDArray[np.uint64]]:
        """The thread's totals, and the addresses (uint64, sorted) of the rep instructions it executed."""
        executions = thread.executions(self.table)
        rep_executions = executions[self.rep_at]
        reps = distinct(self.rep_address[rep_executions > 0])
        totals = Totals(
            instructions=int(executions.sum()),
            rep_instructions=int(rep_executions.sum()),
            rep_iterations=thread.rep_iterations,
            distinct_reps=len(reps),
            fldcw=int(executions[self.fldcw_at].sum()),
            blocks=int(executed(thread).sum()),
        )
        return totals, reps


def executed(thread: ThreadCounts) -> npt.NDArray[np.bool_]:
    """Which rows of the table the thread executed, wholly or in part (bool, B)."""
    out: npt.NDArray[np.bool_] = thread.entries > 0
    out[thread.partial[thread.partial[:, 2] > 0, 0]] = True
    return out


def thread_totals(table: BlockTable, thread: ThreadCounts) -> Totals:
    """Totals of one thread."""
    return StaticFacts(table).totals(thread)[0]


def process_totals(process: ProcessResult) -> tuple[Totals, tuple[Totals, ...]]:
    """Totals of one process image, and those of each of its threads.

    Instructions and iterations are sums; a block or rep instruction that
    several threads executed is one block and one rep instruction.
    """
    facts = StaticFacts(process.table)
    each = [facts.totals(t) for t in process.threads]
    threads = tuple(totals for totals, _ in each)
    reps = distinct(np.concatenate([addresses for _, addresses in each])) if each else ()
    ran = np.zeros(len(process.table), np.bool_)
    for thread in process.threads:
        ran |= executed(thread)
    return _sum(threads, distinct_reps=len(reps), blocks=int(ran.sum())), threads


def sum_totals(each: Iterable[Totals]) -> Totals:
    """Totals of images together: plain sums, also of blocks and of distinct rep instructions. (Each image has
    its own blocks and addresses.)"""
    parts = list(each)
    return _sum(parts, sum(t.distinct_reps for t in parts), sum(t.blocks for t in parts))


def _sum(parts: Sequence[Totals], distinct_reps: int, blocks: int) -> Totals:
    return Totals(
        instructions=sum(t.instructions for t in parts),
        rep_instructions=sum(t.rep_instructions for t in parts),
        rep_iterations=sum(t.rep_iterations for t in parts),
        distinct_reps=distinct_reps,
        fldcw=sum(t.fldcw for t in parts),
        blocks=blocks,
    )


def _addresses(table: BlockTable, at: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """Addresses (uint64) of the instructions at positions `at` of `table.form`."""
    lengths = table.step.astype(np.uint64)
    behind = np.cumsum(lengths, dtype=np.uint64)  # bytes of all blocks up to and with each instruction
    before = behind - lengths
    block = np.searchsorted(table.start, at, side="right") - 1
    out: npt.NDArray[np.uint64] = table.address[block] + before[at] - before[table.start[block]]
    return out
