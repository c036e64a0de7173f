"""Every function that was executed: what a comparison of two runs and a report begin with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.analyses import hot
from livepro.analyses.origins import COMPILED, labels
from livepro.analyses.totals import executed
from livepro.model import BlockTable, CodeLabel, Origin, ThreadCounts


class FunctionRow(NamedTuple):
    """What was executed of one function. `function` is empty for code of a module without symbols;
    `origin` and `tier` tell the makers of a virtual machine's code apart (empty and 0 in other
    processes, see `livepro.model.CodeLabel`); `simd` are the SIMD instructions among `instructions`."""

    function: str
    module: str
    origin: str
    tier: int
    blocks: int
    instructions: int
    simd: int


class FunctionTable(NamedTuple):
    """All executed functions, the hottest first, and of each block (int64, B) its function's row
    in that list (-1: the block was not executed)."""

    rows: list[FunctionRow]
    of_block: npt.NDArray[np.int64]


def functions(table: BlockTable, *threads: ThreadCounts) -> FunctionTable:
    """The functions that `threads` together executed. Their rows sum to the totals."""
    counts = hot.instructions(table, *threads)
    ran = np.zeros(len(table), np.bool_)
    for thread in threads:
        ran |= executed(thread)
    known = labels(table) if table.label is not None else None
    number: dict[tuple[str, str, str, int], int] = {}
    group = np.full(len(table), -1, np.int64)
    for row in np.flatnonzero(ran).tolist():
        made_by = ("", 0) if known is None else _made_by(known[row])
        key = (table.function[row], table.module[row], *made_by)
        group[row] = number.setdefault(key, len(number))
    instructions = np.zeros(len(number), np.uint64)
    np.add.at(instructions, group[ran], counts[ran])
    blocks = np.bincount(group[ran], minlength=len(number))
    simd = _simd(table, threads, group, len(number))
    order = np.argsort(-instructions.astype(np.int64), kind="stable")
    place = np.empty(len(number) + 1, np.int64)
    place[order] = np.arange(len(number))
    place[-1] = -1
    keys = list(number)
    rows = [
        FunctionRow(*keys[n], *(int(sums[n]) for sums in (blocks, instructions, simd)))
        for n in order.tolist()
    ]
    return FunctionTable(rows, place[group])


def simd_positions(table: BlockTable) -> npt.NDArray[np.bool_]:
    """Which instructions of `table.form` are SIMD instructions (bool, like `form`)."""
    kinds = np.array([i.simd is not None for i in table.instructions], np.bool_)
    found: npt.NDArray[np.bool_] = kinds[table.form] if len(kinds) else np.zeros(0, np.bool_)
    return found


def _made_by(label: CodeLabel) -> tuple[str, int]:
    return str(label.origin), label.tier if label.origin in (*COMPILED, Origin.WRAPPER) else 0


def _simd(
    table: BlockTable, threads: tuple[ThreadCounts, ...], group: npt.NDArray[np.int64], groups: int
) -> npt.NDArray[np.uint64]:
    """SIMD instructions executed in each group of blocks (uint64)."""
    out = np.zeros(groups, np.uint64)
    at = np.flatnonzero(simd_positions(table))
    of_instruction = np.repeat(group, table.length)[at]
    at, of_instruction = at[of_instruction >= 0], of_instruction[of_instruction >= 0]
    for thread in threads:
        np.add.at(out, of_instruction, thread.executions(table)[at])
    return out
