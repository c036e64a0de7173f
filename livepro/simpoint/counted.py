"""Vectors of a thread that livepro counted, with what is known of its blocks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.analyses.bbv import CutRule, vectors
from livepro.model import BlockTable, ProcessResult, RunResult, ThreadCounts
from livepro.model.itypes import DEFAULT_GROUPS
from livepro.simpoint.vectors import Blocks, Floats, Metric, Vectors, from_rows

TYPE, SIMD, WIDTH = "type", "SIMD", "SIMD set"
"""Groups of metrics: instruction types (MICA's groups), all SIMD, SIMD by set and width."""


def busiest(result: RunResult) -> tuple[ProcessResult, int] | None:
    """The process image and, in it, the place of the thread that executed most; None in an empty run."""
    found = [
        (thread.instructions(process.table), process, number)
        for process in result.processes
        for number, thread in enumerate(process.threads)
    ]
    if not found:
        return None
    _, process, number = max(found, key=lambda item: item[0])
    return process, number


def of_thread(
    table: BlockTable, thread: ThreadCounts, name: str = "the thread", rule: CutRule | None = None
) -> Vectors:
    """The thread's vectors, with its blocks' places and metrics: instruction types and SIMD.

    `totals` of the metrics are exact; a vector's are those of its blocks in proportion to the
    instructions executed in each, so that where a cut falls into a block, the types of that one
    execution are shared out between two intervals in proportion.
    """
    metrics, of_form = metrics_of(table)
    density = densities(table, of_form)
    executed = thread.form_counts(table).astype(np.int64)
    totals = tuple(int(n) for n in (executed @ of_form.astype(np.int64)).tolist())
    blocks = Blocks(table.address, table.function, table.module, table.offset, metrics, density, totals)
    ids = np.arange(1, len(table) + 1)
    return from_rows(vectors(table, thread, rule), name, blocks, ids)


def densities(table: BlockTable, of_form: npt.NDArray[np.bool_]) -> Floats:
    """How many of each block's instructions, on average, each metric counts (float64, B x M): those of the
    encodings that `of_form` says."""
    density = np.zeros((len(table), of_form.shape[1]))
    if len(table):
        per_block = np.add.reduceat(of_form[table.form], table.start[:-1], axis=0)
        density = per_block / table.length[:, None]
    return density


def metrics_of(table: BlockTable) -> tuple[tuple[Metric, ...], npt.NDArray[np.bool_]]:
    """The metrics, and which of them (columns) each row of `table.instructions` counts for."""
    number: dict[Metric, int] = {Metric(group, TYPE): n for n, group in enumerate(DEFAULT_GROUPS)}
    pairs = []
    for row, instruction in enumerate(table.instructions):
        own = [Metric(group, TYPE) for group in instruction.itypes]
        facts = instruction.simd
        if facts is not None:
            width = "scalar" if facts.scalar else str(facts.width) if facts.width else "other"
            own += [Metric("SIMD", SIMD), Metric(f"{facts.set} {width}", WIDTH)]
        pairs += [(row, number.setdefault(metric, len(number))) for metric in own]
    out = np.zeros((len(table.instructions), len(number)), np.bool_)
    if pairs:
        rows, columns = zip(*pairs, strict=True)
        out[list(rows), list(columns)] = True
    return tuple(number), out
