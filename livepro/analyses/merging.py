"""Several measurements of the same processes as one: counts added up, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from livepro.model import BlockTable, CodeLabel, Instruction, Interval, ProcessResult, ThreadCounts
from livepro.model.label import outside

_Rows = npt.NDArray[np.int64]


def merge(measurements: Sequence[Sequence[ProcessResult]]) -> tuple[ProcessResult, ...]:
    """The processes of all measurements, in order of their first one. A process is the same where pid
    and command are, a thread where its tid is, a block where address, code and module are."""
    groups: dict[tuple[int, tuple[str, ...]], list[ProcessResult]] = {}
    for processes in measurements:
        for process in processes:
            groups.setdefault((process.pid, process.command), []).append(process)
    return tuple(_merged(group) for group in groups.values())


def _merged(group: list[ProcessResult]) -> ProcessResult:
    if len(group) == 1:
        return group[0]
    table, rows = merge_tables([process.table for process in group])
    threads: dict[int, list[tuple[ThreadCounts, _Rows]]] = {}
    for process, where in zip(group, rows, strict=True):
        for thread in process.threads:
            threads.setdefault(thread.tid, []).append((thread, where))
    merged = tuple(_thread(parts, len(table)) for parts in threads.values())
    return replace(group[-1], table=table, threads=merged)


def merge_tables(tables: Sequence[BlockTable]) -> tuple[BlockTable, list[_Rows]]:
    """One table of the blocks of several, in order of first appearance, and for each of the several
    the rows (int64) that its own are in it."""
    known: dict[tuple[int, bytes, str], int] = {}
    chosen: list[tuple[BlockTable, int]] = []
    rows = []
    labels: dict[int, CodeLabel] = {}
    for table in tables:
        where = np.empty(len(table), np.int64)
        keys = zip(table.address.tolist(), table.code, table.module, strict=True)
        for row, key in enumerate(keys):
            found = known.setdefault(key, len(known))
            if found == len(chosen):
                chosen.append((table, row))
            where[row] = found
            if table.label is not None:
                labels.setdefault(found, table.label[row])
        rows.append(where)
    kinds: dict[Instruction, int] = {}
    forms = {
        id(table): np.array([kinds.setdefault(i, len(kinds)) for i in table.instructions], np.uint32)
        for table in tables
    }
    within = [(table, slice(int(table.start[row]), int(table.start[row + 1]))) for table, row in chosen]
    return (
        BlockTable(
            address=np.array([table.address[row] for table, row in chosen], np.uint64),
            size=np.array([table.size[row] for table, row in chosen], np.uint32),
            length=np.array([table.length[row] for table, row in chosen], np.uint32),
            code=tuple(table.code[row] for table, row in chosen),
            step=np.concatenate([np.zeros(0, np.uint8), *(table.step[part] for table, part in within)]),
            form=np.concatenate(
                [np.zeros(0, np.uint32), *(forms[id(table)][table.form[part]] for table, part in within)]
            ),
            instructions=tuple(kinds),
            function=tuple(table.function[row] for table, row in chosen),
            module=tuple(table.module[row] for table, row in chosen),
            offset=np.array([table.offset[row] for table, row in chosen], np.uint64),
            # A table in which nothing of the virtual machine occurs has no labels.
            label=tuple(labels.get(n) or outside(table.module[row]) for n, (table, row) in enumerate(chosen))
            if labels
            else None,
        ),
        rows,
    )


def _thread(parts: list[tuple[ThreadCounts, _Rows]], blocks: int) -> ThreadCounts:
    entries = np.zeros(blocks, np.uint64)
    partial: Counter[tuple[int, int]] = Counter()
    intervals: list[Interval] = []
    for thread, rows in parts:
        entries[rows] += thread.entries
        for row, prefix, times in thread.partial.tolist():
            partial[int(rows[row]), prefix] += times
        for interval in thread.intervals:
            where = rows[interval.rows]
            order = np.argsort(where)
            intervals.append(Interval(interval.instructions, where[order], interval.counts[order]))
    last = parts[-1][0]
    return ThreadCounts(
        tid=last.tid,
        name=last.name,
        entries=entries,
        partial=np.array([(*key, n) for key, n in sorted(partial.items()) if n], np.int64).reshape(-1, 3),
        rep_iterations=sum(thread.rep_iterations for thread, _ in parts),
        intervals=tuple(intervals),
    )
