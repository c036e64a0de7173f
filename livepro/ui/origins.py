"""Who made the code of a Java virtual machine's process, as the summary shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.text import Text

from livepro.analyses import origins, simd
from livepro.model import CodeLabel, Origin, ProcessResult, RunResult
from livepro.ui.matrix import LONGEST_NAME, simd_title
from livepro.ui.tables import GAP, INDENT, Column, Table
from livepro.ui.text import grouped, percent
from livepro.ui.view import NO_WIDTH, SimdKey

MOST_ROWS = 16
"""Rows of the table of threads and origins."""

METHODS = 10


class Made(NamedTuple):
    """What a thread executed of one origin's code; `simd` by set and width."""

    tid: str
    thread: str
    label: str
    instructions: int
    simd: Counter[SimdKey]


def machines(result: RunResult) -> list[ProcessResult]:
    """The processes that have labels and executed something."""
    return [p for p in result.processes if p.table.label is not None and p.instructions]


def label_of(origin: str, tier: int) -> str:
    """An origin with its tier, where it could be one of several."""
    return CodeLabel(Origin(origin), tier).maker


def by_origin(processes: Sequence[ProcessResult]) -> Table:
    """Instructions, blocks and SIMD instructions by origin of their code; sums to the processes' totals."""
    sums: dict[str, list[int]] = {}
    for process in processes:
        for row in origins.origins(process.table, *process.threads):
            cells = sums.setdefault(label_of(row.origin, row.tier), [0, 0, 0])
            for at, number in enumerate((row.instructions, row.blocks, row.simd)):
                cells[at] += number
    whole = sum(cells[0] for cells in sums.values())
    vectors = sum(cells[2] for cells in sums.values())
    table = Table(
        [
            Column("code of", right=False),
            *map(Column, ("instructions", "share", "blocks", "SIMD", "of all SIMD")),
        ]
    )
    for name, (instructions, blocks, count) in sorted(sums.items(), key=lambda item: -item[1][0]):
        table.add(
            name,
            grouped(instructions),
            percent(instructions, whole),
            grouped(blocks),
            grouped(count) if count else "-",
            percent(count, vectors) if count else "-",
        )
    return table


def made(processes: Iterable[ProcessResult]) -> list[Made]:
    """A row per thread and origin with SIMD instructions, threads in order, the most SIMD first."""
    rows = []
    for process in processes:
        kinds = simd.SimdKinds(process.table)
        for thread in process.threads:
            sums: dict[str, Counter[SimdKey]] = {}
            for r in kinds.rows_by_label(thread):
                width = "scalar" if r.scalar else str(r.width) if r.width else NO_WIDTH
                sums.setdefault(label_of(r.origin, r.tier), Counter())[r.set, width] += r.count
            instructions: Counter[str] = Counter()
            for row in origins.origins(process.table, thread):
                instructions[label_of(row.origin, row.tier)] += row.instructions
            for label, counts in sorted(sums.items(), key=lambda item: -item[1].total()):
                rows.append(Made(str(thread.tid), thread.name, label, instructions[label], counts))
    return rows


def simd_by_origin(rows: Sequence[Made], width: int) -> Table:
    """SIMD instructions of each thread and origin, by as many sets and widths as fit."""
    total: Counter[SimdKey] = Counter()
    for row in rows:
        total.update(row.simd)
    names = max([len("thread"), *(min(len(row.thread), LONGEST_NAME) for row in rows)])
    fixed = [max(map(len, column)) for column in zip(*((r.tid, r.label) for r in rows), strict=True)]
    left = width - INDENT - sum(fixed) - names - 5 * GAP - 2 * len("instructions")
    keys: list[SimdKey] = []
    for key, number in total.most_common():
        left -= GAP + max(len(grouped(number)), *map(len, simd_title(key).split("\n")))
        if left < 0:
            break
        keys.append(key)
    table = Table(
        [
            Column("tid", right=False),
            Column("thread", right=False, flexible=True),
            Column("code of", right=False),
            Column("instructions"),
            Column("SIMD"),
            *[Column(simd_title(key)) for key in keys],
        ]
    )
    before = ""
    for row in rows:
        cells = [grouped(row.simd[key]) if row.simd[key] else Text("-", "dim") for key in keys]
        again = row.tid == before
        before = row.tid
        table.add(
            "" if again else row.tid,
            "" if again else row.thread,
            row.label,
            grouped(row.instructions),
            grouped(row.simd.total()),
            *cells,
        )
    return table


def hottest_methods(processes: Sequence[ProcessResult], whole: int) -> Table | None:
    """The Java methods whose compiled code executed most; None if there are none."""
    rows = [m for p in processes for m in origins.methods(p.table, *p.threads, limit=METHODS)]
    rows = sorted(rows, key=lambda m: -m.instructions)[:METHODS]
    if not rows:
        return None
    table = Table(
        [
            Column("instructions"),
            Column("share"),
            Column("SIMD"),
            Column("code of", right=False),
            Column("method", right=False, flexible=True, style="cyan"),
        ]
    )
    for m in rows:
        table.add(
            grouped(m.instructions),
            percent(m.instructions, whole),
            percent(m.simd, m.instructions),
            label_of(m.origin, m.tier),
            m.method,
        )
    return table
