"""A run as pandas data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livepro.analyses import hot, simd
from livepro.analyses.itypes import itypes
from livepro.analyses.totals import process_totals
from livepro.errors import LiveproError
from livepro.model import ProcessResult, RunResult, ThreadCounts
from livepro.model.itypes import ItypesSpec

if TYPE_CHECKING:
    from pandas import DataFrame


TOTALS = ("instructions", "rep_instructions", "rep_iterations", "distinct_reps", "fldcw", "blocks")

SIMD = (
    "set",
    "mnemonic",
    "opcode",
    "category",
    "extension",
    "type",
    "width",
    "scalar",
    "element",
    "masked",
    "count",
    "description",
    "origin",
    "tier",
    "method",
)

BLOCKS = (
    "id",
    "address",
    "size",
    "length",
    "function",
    "module",
    "offset",
    "origin",
    "tier",
    "instructions",
    "entries",
)


def to_pandas(result: RunResult, spec: ItypesSpec | None = None) -> dict[str, DataFrame]:
    """The run as four data frames, each with columns ``pid`` and ``image`` of the process image.

    ``threads``: a row per thread: ``tid``, ``name``, ``command`` (of its
    process), ``instructions``, ``rep_instructions``, ``rep_iterations``,
    ``distinct_reps``, ``fldcw``, ``blocks``.
    ``simd``: the fields of `livepro.analyses.simd.SimdRow`, `thread` called ``tid``.
    ``itypes``: a row per thread and group: ``tid``, ``group``, ``count``; zeros
    included. `spec` are the user's groups (None: the default ones).
    ``blocks``: a row per block of each table: ``id``, ``address``, ``size``,
    ``length``, ``function``, ``module``, ``offset``, ``origin`` and ``tier`` (who made the
    code, in a process that runs a Java virtual machine, else empty and 0; the ``simd`` rows
    have them too, with the Java ``method``), ``instructions`` and ``entries`` (complete
    executions) of all threads together.

    Raises LiveproError when pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise LiveproError(
            "pandas is not installed, and data frames need it.", "Run `pip install 'livepro[pandas]'`."
        ) from None

    def frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> DataFrame:
        return pandas.DataFrame(rows, columns=["pid", "image", *columns])

    threads: list[dict[str, Any]] = []
    simd_rows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for process in result.processes:
        key = {"pid": process.pid, "image": process.image}
        _, totals = process_totals(process)
        for thread, own, rows in zip(
            process.threads, totals, simd.process_rows_by_label(process), strict=True
        ):
            named = {**key, "tid": thread.tid}
            about = {"name": thread.name, "command": " ".join(process.command)}
            threads.append({**named, **about, **{name: getattr(own, name) for name in TOTALS}})
            simd_rows += [
                {**named, **{name: getattr(row, name) for name in SIMD}, "type": str(row.type)}
                for row in rows
            ]
            groups += [
                {**named, "group": g, "count": n} for g, n in itypes(process.table, thread, spec).items()
            ]
    blocks = [block_columns(process) for process in result.processes]
    return {
        "threads": frame(threads, ("tid", "name", "command", *TOTALS)),
        "simd": frame(simd_rows, ("tid", *SIMD)),
        "itypes": frame(groups, ("tid", "group", "count")),
        "blocks": pandas.concat([pandas.DataFrame(b) for b in blocks], ignore_index=True)
        if blocks
        else frame([], BLOCKS),
    }


def block_columns(process: ProcessResult) -> dict[str, Any]:
    """The columns of one process image's blocks, in order of first execution."""
    table = process.table
    return {
        "pid": process.pid,
        "image": process.image,
        "id": np.arange(1, len(table) + 1),
        "address": table.address,
        "size": table.size,
        "length": table.length,
        "function": list(table.function),
        "module": list(table.module),
        "offset": table.offset,
        "origin": [""] * len(table) if table.label is None else [str(label.origin) for label in table.label],
        "tier": np.array([label.tier for label in table.label or ()] or np.zeros(len(table)), np.uint8),
        "instructions": hot.instructions(table, *process.threads),
        "entries": entries(process.threads, len(table)),
    }


def entries(threads: tuple[ThreadCounts, ...], blocks: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Complete executions of each block by all threads together (uint64, B)."""
    out = np.zeros(blocks, np.uint64)
    for thread in threads:
        out += thread.entries
    return out
