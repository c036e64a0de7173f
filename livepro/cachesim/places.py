"""Counts of instructions by function and by source line, as results have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.events.program import Program

_SHOWN = 10
"""Functions in the summary."""


def by_place(table: npt.NDArray[np.int64], program: Program) -> tuple[list[list[Any]], list[list[Any]]]:
    """Rows by source line (file, function, line, counts) in their order, and by function (its name, module,
    counts), those with the highest first count first, of a table with a row for each instruction."""
    used = np.flatnonzero(table.any(axis=1))
    sources, source_of = program.sources(used)
    sums = np.zeros((len(sources), table.shape[1]), np.int64)
    np.add.at(sums, source_of, table[used])
    lines: dict[tuple[str, str, int], npt.NDArray[np.int64]] = {}
    functions: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
    for (function, module, file, line), counts in zip(sources, sums, strict=True):
        _count(lines, (file, function, line), counts)
        _count(functions, (function, module), counts)
    by_function = sorted(functions.items(), key=lambda item: (-int(item[1][0]), item[0]))
    return (
        [[*key, *counts.tolist()] for key, counts in sorted(lines.items())],
        [[name, module, *counts.tolist()] for (name, module), counts in by_function],
    )


def _count(counted: dict[Any, npt.NDArray[np.int64]], key: Any, counts: npt.NDArray[np.int64]) -> None:
    if key in counted:
        counted[key] += counts
    else:
        counted[key] = counts.copy()


def frames(result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of the data frames of a result: events by function, and in ``.lines`` by source line."""
    events = result["events"]
    return {
        "": [
            {"function": name, "module": module, **dict(zip(events, counts, strict=True))}
            for name, module, *counts in result["functions"]
        ],
        ".lines": [
            {"file": file, "function": name, "line": line, **dict(zip(events, counts, strict=True))}
            for file, name, line, *counts in result["lines"]
        ],
    }


def functions_text(result: dict[str, Any], shown: Sequence[str]) -> Iterator[str]:
    """The functions that executed most, with the events `shown`, for the summary."""
    yield ""
    yield "".join(f"{event:>14}" for event in shown) + "  function"
    at = [result["events"].index(event) for event in shown]
    for name, module, *counts in result["functions"][:_SHOWN]:
        made = f"  ({module})" if name and module and module[0] not in "/[" else ""  # by a virtual machine
        yield "".join(f"{counts[n]:>14,}" for n in at) + f"  {name or module or '?'}{made}"
