"""Source lines of blocks, where their files have debug information."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from livepro.blocks.rows import BlockRow
from livepro.linux.lines import LineTables


def with_lines(rows: Sequence[BlockRow]) -> list[BlockRow]:
    """The rows with the source file and line of each block's first instruction, where its module has debug
    information (see `linux.lines`, also for the time that it takes at most); the others as they are."""
    tables = LineTables()
    out = list(rows)
    places: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        places.setdefault(row.module, []).append(i)
    for module, own in places.items():
        addresses = np.array([rows[i].address for i in own], np.uint64)
        for i, line in zip(own, tables.lookup(os.path.abspath(module), addresses), strict=True):
            if line is not None:
                out[i] = replace(rows[i], file=line[0], line=line[1])
    return out
