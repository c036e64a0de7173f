"""Code that programs make while they run, and has no name."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

import numpy as np

from livepro.analyses import hot
from livepro.model import BlockTable, Origin, RunResult
from livepro.model.label import generated


def unnamed(result: RunResult) -> Counter[str]:
    """Instructions executed in generated code that nobody has named, by the program's name; code of Java
    virtual machines, which says by itself who made it, is left out."""
    out = Counter[str]()
    for process in result.processes:
        rows = _unnamed_rows(process.table)
        if rows and process.command:
            counts = hot.instructions(process.table, *process.threads)
            out[PurePath(process.command[0]).name] += int(counts[np.array(rows)].sum())
    return out


def _unnamed_rows(table: BlockTable) -> list[int]:
    nobody = [module for module in set(table.module) if generated(module)]
    return [
        row
        for row, module in enumerate(table.module)
        if module in nobody
        and not table.function[row]
        and (table.label is None or table.label[row].origin == Origin.GENERATED)
    ]
