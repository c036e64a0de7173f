"""A run as the summary shows it: a few numbers per process and thread, already added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from livepro.analyses import hot, simd
from livepro.analyses.totals import Totals, process_totals
from livepro.model import BlockTable, ProcessResult, RunResult, ThreadCounts
from livepro.model.itypes import DEFAULT_GROUPS

GroupCounter = Callable[[BlockTable, ThreadCounts], Mapping[str, int]]
"""Counts a thread's instructions by instruction-type group, in the order to show."""

BlockKey = tuple[str, str, int, int]
"""Function, module, offset, length in instructions."""

SimdKey = tuple[str, str]
"""Instruction set and width: ``("SSE2i", "128")``, ``("SSE1f", "scalar")``."""


@dataclass(frozen=True)
class Counts:
    """Instructions of a thread, a process or a run, by what they are. `itypes` counts by
    group (an instruction can be in several), `simd` by set and width, `simd_types` by type."""

    instructions: int
    rep_instructions: int
    rep_iterations: int
    itypes: Counter[str]
    simd: Counter[SimdKey]
    simd_types: Counter[str]

    @property
    def simd_total(self) -> int:
        """SIMD instructions."""
        return self.simd.total()


@dataclass(frozen=True)
class ThreadView:
    """One thread; `blocks` counts the distinct blocks it entered."""

    tid: int
    name: str
    blocks: int
    counts: Counts


@dataclass(frozen=True)
class ProcessView:
    """One process image and its threads, in order of start."""

    pid: int
    program: str
    exit: int | None
    blocks: int
    threads: tuple[ThreadView, ...]
    counts: Counts


@dataclass(frozen=True)
class HotBlock:
    """A block, or the same block of several processes: instructions executed in it, times
    it was entered (left early included)."""

    instructions: int
    executions: int
    function: str
    place: str


@dataclass(frozen=True)
class RunView:
    """The whole run; `hot` in descending order of instructions."""

    processes: tuple[ProcessView, ...]
    counts: Counts
    hot: tuple[HotBlock, ...]


def view(result: RunResult, hottest: int = 10, groups: GroupCounter | None = None) -> RunView:
    """Add up `result`; keep the `hottest` blocks. `groups` counts instruction types
    (default: MICA's groups)."""
    processes = tuple(process_view(p, groups or default_groups) for p in result.processes)
    return RunView(processes, added(p.counts for p in processes), hot_blocks(result, hottest))


def process_view(process: ProcessResult, groups: GroupCounter) -> ProcessView:
    """One process image, added up; `groups` counts a thread's instruction types."""
    totals, each = process_totals(process)
    rows = simd.process_rows(process)
    threads = tuple(
        ThreadView(thread.tid, thread.name, own.blocks, counts(own, simd_rows, groups(process.table, thread)))
        for thread, own, simd_rows in zip(process.threads, each, rows, strict=True)
    )
    return ProcessView(
        pid=process.pid,
        program=" ".join(process.command),
        exit=process.exit,
        blocks=totals.blocks,
        threads=threads,
        counts=added(t.counts for t in threads),
    )


def counts(totals: Totals, rows: list[simd.SimdRow], itypes: Mapping[str, int]) -> Counts:
    """One thread's counts out of what the analyses say."""
    widths: Counter[SimdKey] = Counter()
    for key, number in simd.by_set_and_width(rows).items():
        # Scalar instructions of a set count together, whatever their element's width.
        widths[key.set, "scalar" if key.scalar else str(key.width)] += number
    return Counts(
        instructions=totals.instructions,
        rep_instructions=totals.rep_instructions,
        rep_iterations=totals.rep_iterations,
        itypes=Counter({group: number for group, number in itypes.items() if number}),
        simd=widths,
        simd_types=Counter({kind.value: number for kind, number in simd.by_type(rows).items()}),
    )


def default_groups(table: BlockTable, thread: ThreadCounts) -> dict[str, int]:
    """The thread's instructions by default group, in the groups' own order."""
    found: Counter[str] = Counter()
    for instruction, times in zip(table.instructions, thread.form_counts(table).tolist(), strict=True):
        if times:
            for group in instruction.itypes:
                found[group] += times
    return {group: found[group] for group in DEFAULT_GROUPS}


def added(parts: Iterable[Counts]) -> Counts:
    """The sum of several counts."""
    total = Counts(0, 0, 0, Counter(), Counter(), Counter())
    for part in parts:
        total = Counts(
            total.instructions + part.instructions,
            total.rep_instructions + part.rep_instructions,
            total.rep_iterations + part.rep_iterations,
            total.itypes + part.itypes,
            total.simd + part.simd,
            total.simd_types + part.simd_types,
        )
    return total


def hot_blocks(result: RunResult, hottest: int) -> tuple[HotBlock, ...]:
    """The `hottest` blocks of the run; blocks of one file count together in all processes."""
    # Only what is hot in some process can be shown; naming every block would take the time.
    near = {
        (block.function, block.module, block.offset, block.length)
        for p in result.processes
        for block in hot.blocks(p.table, *p.threads, limit=4 * hottest)
    }
    offsets = [key[2] for key in near]
    inside: Counter[BlockKey] = Counter()
    entered: Counter[BlockKey] = Counter()
    for process in result.processes:
        table = process.table
        counts = hot.instructions(table, *process.threads)
        times = entries(process)
        for row in np.flatnonzero(np.isin(table.offset, offsets)).tolist():
            key = (table.function[row], table.module[row], int(table.offset[row]), int(table.length[row]))
            if key in near:
                inside[key] += int(counts[row])
                entered[key] += int(times[row])
    return tuple(
        HotBlock(number, entered[key], key[0], place(key)) for key, number in inside.most_common(hottest)
    )


def entries(process: ProcessResult) -> npt.NDArray[np.uint64]:
    """Times the threads entered each block, left early or not (uint64, B)."""
    out = np.zeros(len(process.table), np.uint64)
    for thread in process.threads:
        out += thread.entries
        np.add.at(out, thread.partial[:, 0], thread.partial[:, 2].astype(np.uint64))
    return out


def place(key: BlockKey) -> str:
    """Module and offset, as symbolisers take them."""
    return f"{PurePath(key[1]).name}+{key[2]:#x}" if key[1] else f"{key[2]:#x}"
