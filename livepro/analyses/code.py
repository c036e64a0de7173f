"""The executed blocks of a process, their code and counts, packed to be stored in a report.

An array is packed as text: its values little-endian, compressed by zlib (RFC 1950), in base64
(RFC 4648). A Java program's hundred thousand blocks take a few megabytes that way. `unpacked` gives
the blocks back.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.analyses import hot
from livepro.model import BlockTable, ThreadCounts
from livepro.model.arrays import ranges

Lines = Callable[[str, npt.NDArray[np.uint64]], Sequence[tuple[str, int] | None]]
"""Source file and line of places in a module: (module, offsets (uint64)) -> one each, None where
that is not known."""

_LEVEL = 4
"""That of zlib: gcc's 100,000 blocks take a third of the time that they take with 6, and 1.4 % more room."""
_TYPES = {
    "id": "<u4",
    "function": "<u4",
    "address": "<u8",
    "offset": "<u8",
    "length": "<u4",
    "entries": "<u8",
    "instructions": "<u8",
    "step": "u1",
    "code": "u1",
    "line": "<u4",
}


class CodeThread(NamedTuple):
    """What one thread executed of the blocks: `row` (uint32) are rows of the block arrays, `entries`
    (uint64) complete executions of each; `partial` is as in `Code`."""

    row: npt.NDArray[np.uint32]
    entries: npt.NDArray[np.uint64]
    partial: list[tuple[int, int, int]]


class Code(NamedTuple):
    """Executed blocks, the hottest first. By block: `id`, `function` (the row of its function in the
    process's list), `address`, `offset`, `length` (instructions), `entries` (complete executions by all
    threads) and `instructions`. By instruction, block after block: `step` (its bytes) and `line` (a row of
    `lines`, from 1; 0: not known). `code` are all their bytes. `partial` has rows (block's row,
    k, times) as `livepro.model.ThreadCounts` has them. `lines` are (file, line). `threads` are
    in the order of the process's."""

    id: npt.NDArray[np.uint32]
    function: npt.NDArray[np.uint32]
    address: npt.NDArray[np.uint64]
    offset: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint32]
    entries: npt.NDArray[np.uint64]
    instructions: npt.NDArray[np.uint64]
    step: npt.NDArray[np.uint8]
    code: npt.NDArray[np.uint8]
    line: npt.NDArray[np.uint32]
    partial: list[tuple[int, int, int]]
    lines: list[tuple[str, int]]
    threads: list[CodeThread]

    def executions(self) -> npt.NDArray[np.int64]:
        """Executions of each instruction of each block (int64, like `step`)."""
        out = np.repeat(self.entries.astype(np.int64), self.length)
        start = self.start()
        for row, prefix, times in self.partial:
            out[start[row] : start[row] + prefix] += times
        return out

    def start(self) -> npt.NDArray[np.int64]:
        """Index of each block's first instruction (int64, blocks + 1)."""
        out: npt.NDArray[np.int64] = np.concatenate(([0], np.cumsum(self.length, dtype=np.int64)))
        return out


def code(
    table: BlockTable,
    of_block: npt.NDArray[np.int64],
    threads: Sequence[ThreadCounts],
    lines: Lines | None = None,
) -> Code:
    """The blocks that `threads` executed. `of_block` (int64, B) are their functions' rows, below 0 for blocks
    that did not run; `lines` finds source lines."""
    counts = hot.instructions(table, *threads)
    rows = np.flatnonzero(of_block >= 0)
    rows = rows[np.argsort(-counts[rows].astype(np.int64), kind="stable")]
    place = np.full(len(table), -1, np.int64)
    place[rows] = np.arange(len(rows))
    entries = np.zeros(len(table), np.uint64)
    for thread in threads:
        entries += thread.entries
    step = table.step[ranges(table.start[rows].astype(np.int64), table.length[rows].astype(np.int64))]
    line, found = _lines(table, rows, step, lines)
    return Code(
        id=(rows + 1).astype(np.uint32),
        function=of_block[rows].astype(np.uint32),
        address=table.address[rows],
        offset=table.offset[rows],
        length=table.length[rows].astype(np.uint32),
        entries=entries[rows],
        instructions=counts[rows],
        step=step,
        code=np.frombuffer(b"".join(table.code[r] for r in rows.tolist()), np.uint8),
        line=line,
        partial=_partial(threads, place),
        lines=found,
        threads=[_thread(thread, place) for thread in threads],
    )


def packed(found: Code) -> dict[str, Any]:
    """`found` as values that JSON knows."""
    return {
        **{name: pack(getattr(found, name), kind) for name, kind in _TYPES.items()},
        "partial": [list(row) for row in found.partial],
        "lines": [list(line) for line in found.lines],
        "threads": [
            {
                "row": pack(t.row, "<u4"),
                "entries": pack(t.entries, "<u8"),
                "partial": [list(row) for row in t.partial],
            }
            for t in found.threads
        ],
    }


def unpacked(document: dict[str, Any]) -> Code:
    """What `packed` packed. Raises ValueError for anything else."""
    try:
        return Code(
            **{name: _unpack(document[name], kind) for name, kind in _TYPES.items()},
            partial=_rows(document["partial"]),
            lines=[(str(file), int(line)) for file, line in document["lines"]],
            threads=[
                CodeThread(_unpack(t["row"], "<u4"), _unpack(t["entries"], "<u8"), _rows(t["partial"]))
                for t in document["threads"]
            ],
        )
    except (KeyError, TypeError, zlib.error) as error:
        raise ValueError(f"the code of a process is damaged: {error!r}") from error


def _thread(thread: ThreadCounts, place: npt.NDArray[np.int64]) -> CodeThread:
    rows = np.flatnonzero(thread.entries)
    rows = rows[np.argsort(place[rows])]
    return CodeThread(place[rows].astype(np.uint32), thread.entries[rows], _partial([thread], place))


def _partial(threads: Sequence[ThreadCounts], place: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """The executions that left a block early, of all threads together."""
    sums: dict[tuple[int, int], int] = {}
    for thread in threads:
        for row, prefix, times in thread.partial.tolist():
            key = int(place[row]), prefix
            sums[key] = sums.get(key, 0) + times
    return [(row, k, times) for (row, k), times in sorted(sums.items()) if row >= 0 and times]


def _rows(rows: Sequence[Sequence[int]]) -> list[tuple[int, int, int]]:
    return [(int(row), int(k), int(times)) for row, k, times in rows]


def _lines(
    table: BlockTable, rows: npt.NDArray[np.int64], step: npt.NDArray[np.uint8], lines: Lines | None
) -> tuple[npt.NDArray[np.uint32], list[tuple[str, int]]]:
    """The line of each instruction, as a number from 1, and the lines."""
    out = np.zeros(len(step), np.uint32)
    number: dict[tuple[str, int], int] = {}
    if lines is None or not len(rows):
        return out, []
    lengths = table.length[rows].astype(np.int64)
    ends = np.cumsum(step, dtype=np.int64)
    first = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    within = ends - step - np.repeat((ends - step)[first], lengths)
    offsets = np.repeat(table.offset[rows], lengths) + within.astype(np.uint64)
    names = [table.module[r] for r in rows.tolist()]
    known = {module: n for n, module in enumerate(dict.fromkeys(names))}
    modules = np.repeat([known[name] for name in names], lengths)
    for module, n in known.items():
        at = np.flatnonzero(modules == n)
        for index, line in zip(at.tolist(), lines(module, offsets[at]), strict=False):
            if line is not None:
                out[index] = number.setdefault(line, len(number) + 1)
    return out, list(number)


def pack(array: npt.NDArray[Any], kind: str) -> str:
    """One array as text; `kind` is the NumPy type in which its values are written."""
    data = np.ascontiguousarray(array.astype(kind)).tobytes()
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode()


def _unpack(text: str, kind: str) -> npt.NDArray[Any]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)
