"""What a report page knows of a run: the JSON report, with the text of its instructions and sources.

Blocks stay packed as `livepro.analyses.code` packs them: the page unpacks those of a process when
they are looked at. A page stays below a few megabytes: where a run has more blocks than fit,
the hottest are kept, and the page says how many it left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro import isa
from livepro.analyses import code
from livepro.analyses.code import Code

Document = dict[str, Any]

ROOM = 2_700_000
"""Characters that the packed blocks of all runs on a page may take."""

_DROPPED = ("hottest_functions", "hottest_blocks", "code", "methods")
_LONGEST_LINE = 200


def content(document: Document, room: int = ROOM) -> Document:
    """The run of a JSON report as the page takes it. Raises ValueError where its code is damaged."""
    processes = []
    sources = _Sources()
    total = sum(p["instructions"] for p in document["processes"]) or 1
    for process in document["processes"]:
        kept = {key: value for key, value in process.items() if key not in _DROPPED}
        # A report of an older livepro has neither all functions nor blocks.
        kept.setdefault("functions", [{**f, "simd": None} for f in process["hottest_functions"]])
        if "code" in process:
            share = room * process["instructions"] / total
            kept["code"] = _code(code.unpacked(process["code"]), process["machine"], sources, int(share))
        processes.append(kept)
    return {**document, "processes": processes}


def _code(found: Code, machine: str, sources: _Sources, room: int) -> Document:
    """The blocks of one process with their text, packed into about `room` characters."""
    blocks = len(found.id)
    kept = blocks
    while True:
        part = first(found, kept)
        packed = code.packed(part) | _texts(part, machine)
        size = _size(packed)
        if size <= room or kept <= 100:
            break
        kept = max(100, int(kept * min(0.9, room / size)))
    packed["lines"] = [[file, line, sources.line(file, line)] for file, line in part.lines]
    packed["left_out"] = blocks - kept
    packed["left_out_instructions"] = int(found.instructions[kept:].sum())
    del packed["code"]  # the text tells it
    return packed


def first(found: Code, blocks: int) -> Code:
    """The first `blocks` blocks of `found`: the hottest."""
    if blocks >= len(found.id):
        return found
    instructions = int(found.start()[blocks])
    step = found.step[:instructions]

    def rows(partial: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return [row for row in partial if row[0] < blocks]

    threads = []
    for thread in found.threads:
        kept = thread.row < blocks
        threads.append(code.CodeThread(thread.row[kept], thread.entries[kept], rows(thread.partial)))
    per_block = ("id", "function", "address", "offset", "length", "entries", "instructions")
    return found._replace(
        **{name: getattr(found, name)[:blocks] for name in per_block},
        step=step,
        code=found.code[: int(step.sum())],
        line=found.line[:instructions],
        partial=rows(found.partial),
        threads=threads,
    )


def texts(found: Code, machine: str) -> list[str]:
    """Every instruction of every block as text, addresses as the module's own headers number them."""
    disassemble = isa.for_machine(machine).disassemble
    data = found.code.tobytes()
    out = []
    start, at = found.start(), 0
    steps = found.step.tolist()
    for row, address in enumerate(found.offset.tolist()):
        for step in steps[int(start[row]) : int(start[row + 1])]:
            out.append(disassemble(data[at : at + step], address))
            at += step
            address += step
    return out


def _texts(found: Code, machine: str) -> Document:
    """The distinct texts, packed, one a line, and of each instruction which it is."""
    number: dict[str, int] = {}
    which = [number.setdefault(text, len(number)) for text in texts(found, machine)]
    joined: npt.NDArray[np.uint8] = np.frombuffer("\n".join(number).encode("utf-8", "replace"), np.uint8)
    return {"text": code.pack(np.array(which, np.uint32), "<u4"), "texts": code.pack(joined, "u1")}


def _size(packed: Document) -> int:
    own = sum(len(value) for name, value in packed.items() if isinstance(value, str) and name != "code")
    return own + sum(len(t["row"]) + len(t["entries"]) for t in packed["threads"])


class _Sources:
    """Lines of source files, each file read once; empty where it is not there."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str:
        """The text of a line (from 1)."""
        if file not in self._files:
            try:
                self._files[file] = Path(file).read_text(errors="replace").splitlines()
            except OSError:
                self._files[file] = []
        lines = self._files[file]
        return lines[number - 1][:_LONGEST_LINE] if 0 < number <= len(lines) else ""
