"""A run as the summary shows it: a few numbers per process and thread, already added up."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.analyses import hot, inlined, simd
from livepro.analyses.itypes import itypes, other_items
from livepro.analyses.totals import Totals, process_totals
from livepro.model import BlockTable, ProcessResult, RunResult, ThreadCounts
from livepro.model.itypes import ItypesSpec

BlockKey = tuple[str, str, int, int]
"""Function, module, offset, length in instructions."""

NO_WIDTH = "other"
"""Of instructions that have no vector, such as those that save the registers' state."""

SimdKey = tuple[str, str]
"""Instruction set and width: ``("SSE2i", "128")``, ``("SSE1f", "scalar")``."""


class Counts(NamedTuple):
    """Instructions of a thread, a process or a run, by what they are.

    `itypes` counts by group (an instruction can be in several), `other` by
    category what is in the last group, `simd` by set and width, `simd_types`
    by type.
    """

    instructions: int
    rep_instructions: int
    rep_iterations: int
    itypes: Counter[str]
    other: Counter[str]
    simd: Counter[SimdKey]
    simd_types: Counter[str]

    @property
    def simd_total(self) -> int:
        """SIMD instructions."""
        return self.simd.total()


class ThreadView(NamedTuple):
    """One thread; `blocks` counts the distinct blocks it entered."""

    tid: int
    name: str
    blocks: int
    counts: Counts


class ProcessView(NamedTuple):
    """One process image and its threads, in order of start."""

    pid: int
    program: str
    name: str
    exit: int | None
    blocks: int
    threads: tuple[ThreadView, ...]
    counts: Counts


class HotBlock(NamedTuple):
    """A block, or the same block of several processes: instructions executed in it, times
    it was entered (left early included)."""

    instructions: int
    executions: int
    function: str
    place: str


class RunView(NamedTuple):
    """The whole run; `hot` in descending order of instructions."""

    processes: tuple[ProcessView, ...]
    counts: Counts
    hot: tuple[HotBlock, ...]


def view(
    result: RunResult,
    hottest: int = 10,
    spec: ItypesSpec | None = None,
    frames: inlined.Frames | None = None,
) -> RunView:
    """Add up `result`; keep the `hottest` blocks. `spec` are the user's instruction-type
    groups (None: MICA's); `frames` finds inlined functions."""
    processes = tuple(process_view(p, spec) for p in result.processes)
    return RunView(processes, added(p.counts for p in processes), hot_blocks(result, hottest, frames))


def process_view(process: ProcessResult, spec: ItypesSpec | None) -> ProcessView:
    """One process image, added up."""
    totals, each = process_totals(process)
    rows = simd.process_rows(process)
    threads = tuple(
        ThreadView(thread.tid, thread.name, own.blocks, counts(process.table, thread, own, simd_rows, spec))
        for thread, own, simd_rows in zip(process.threads, each, rows, strict=True)
    )
    return ProcessView(
        pid=process.pid,
        program=shown(process.command),
        name=PurePath(process.command[0]).name if process.command else "",
        exit=process.exit,
        blocks=totals.blocks,
        threads=threads,
        counts=added(t.counts for t in threads),
    )


def shown(command: Sequence[str]) -> str:
    """A command on one line, as one would type it."""
    return " ".join(shlex.join(command).split())


def counts(
    table: BlockTable,
    thread: ThreadCounts,
    totals: Totals,
    rows: list[simd.SimdRow],
    spec: ItypesSpec | None,
) -> Counts:
    """One thread's counts out of what the analyses say."""
    groups = itypes(table, thread, spec)
    widths: Counter[SimdKey] = Counter()
    for key, number in simd.by_set_and_width(rows).items():
        # Scalar instructions of a set count together, whatever their element's width.
        label = "scalar" if key.scalar else str(key.width) if key.width else NO_WIDTH
        widths[key.set, label] += number
    return Counts(
        instructions=totals.instructions,
        rep_instructions=totals.rep_instructions,
        rep_iterations=totals.rep_iterations,
        itypes=Counter(groups),
        other=Counter(dict(other_items(table, thread, spec))),
        simd=widths,
        simd_types=Counter({kind.value: number for kind, number in simd.by_type(rows).items()}),
    )


def added(parts: Iterable[Counts]) -> Counts:
    """The sum of several counts."""
    total = Counts(0, 0, 0, Counter(), Counter(), Counter(), Counter())
    for part in parts:
        total = Counts(
            total.instructions + part.instructions,
            total.rep_instructions + part.rep_instructions,
            total.rep_iterations + part.rep_iterations,
            both(total.itypes, part.itypes),
            total.other + part.other,
            total.simd + part.simd,
            total.simd_types + part.simd_types,
        )
    return total


def both(one: Counter[str], two: Counter[str]) -> Counter[str]:
    """The sum, with what counts 0: Counter's own addition drops it, and with it the order."""
    out = Counter(one)
    out.update(two)
    return out


def hot_blocks(result: RunResult, hottest: int, frames: inlined.Frames | None = None) -> tuple[HotBlock, ...]:
    """The `hottest` blocks of the run; blocks of one file count together in all processes."""
    # Only what is hot in some process can be shown; naming every block would take the time.
    near = {
        (block.function, block.module, block.offset, block.length)
        for p in result.processes
        for block in hot.blocks(p.table, *p.threads, limit=4 * hottest)
    }
    offsets = {key[2] for key in near}
    inside: Counter[BlockKey] = Counter()
    entered: Counter[BlockKey] = Counter()
    for process in result.processes:
        table = process.table
        counts = hot.instructions(table, *process.threads)
        times = entries(process)
        for row, offset in enumerate(table.offset.tolist()):
            if offset not in offsets:
                continue
            key = (table.function[row], table.module[row], int(table.offset[row]), int(table.length[row]))
            if key in near:
                inside[key] += int(counts[row])
                entered[key] += int(times[row])
    most = inside.most_common(hottest)
    within = inlined.of_places([(key[1], key[2]) for key, _ in most], frames)
    return tuple(
        HotBlock(number, entered[key], innermost(key[0], chain), place(key))
        for (key, number), chain in zip(most, within, strict=True)
    )


def innermost(function: str, chain: Sequence[inlined.Frame]) -> str:
    """The function whose code a block is, and the one that it has been inlined into."""
    return f"{chain[0][0]} (in {function})" if len(chain) > 1 else function


def entries(process: ProcessResult) -> npt.NDArray[np.uint64]:
    """Times the threads entered each block, left early or not (uint64, B)."""
    out = np.zeros(len(process.table), np.uint64)
    for thread in process.threads:
        out += thread.entries
        left = thread.partial[thread.partial[:, 2] > 0]
        np.add.at(out, left[:, 0], left[:, 2].astype(np.uint64))
    return out


def place(key: BlockKey) -> str:
    """Module and offset, as symbolisers take them."""
    return f"{PurePath(key[1]).name}+{key[2]:#x}" if key[1] else f"{key[2]:#x}"
