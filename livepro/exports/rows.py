"""What the formats are made of: the instructions of each function, of each thread where that is known."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from livepro.analyses import code

Document = dict[str, Any]


class Row(NamedTuple):
    """What one thread (all, and an empty name, where the report has no blocks) executed of one function."""

    process: str
    thread: str
    module: str
    function: str
    instructions: int


def rows(document: Document) -> list[Row]:
    """All of a report, by process, thread and function. They sum to its instructions. Raises ValueError where
    its code is damaged."""
    out = []
    for process in document["processes"]:
        name = f"{PurePath((process['command'] or ['?'])[0]).name} {process['pid']}"
        functions = process.get("functions", process["hottest_functions"])
        if "code" not in process:
            out += [Row(name, "", f["module"], label(f), f["instructions"]) for f in functions]
            continue
        blocks = code.unpacked(process["code"])
        for thread, counted in zip(process["threads"], blocks.threads, strict=True):
            sums = np.zeros(len(functions), np.int64)
            executed = counted.entries.astype(np.int64) * blocks.length[counted.row]
            np.add.at(sums, blocks.function[counted.row], executed)
            for row, prefix, times in counted.partial:
                sums[blocks.function[row]] += prefix * times
            named = f"{thread['name']} {thread['tid']}"
            out += [
                Row(name, named, functions[n]["module"], label(functions[n]), int(sums[n]))
                for n in np.flatnonzero(sums).tolist()
            ]
    return out


def label(function: Document) -> str:
    """A function's name; of code without symbols, its module's."""
    module = PurePath(function["module"]).name or function["module"]
    return function["function"] or f"[{module.strip('[]')} without symbols]"


def text(out: str) -> bytes:
    """`out` as UTF-8; bytes of the target's that were none are replaced."""
    return out.encode("utf-8", "replace")
