"""Blocks as rows of a data set: what a block is, where it comes from, how often it ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import PurePath
from typing import Any, NamedTuple

from livepro import isa as registry
from livepro.blocks.split import decode
from livepro.isa.base import Isa
from livepro.model import Flow, Instruction

SELF, INNER, NONE = "self", "inner", ""
"""Values of `BlockRow.loop`: the block is its own successor; it is part of an innermost loop; neither."""

EXACT, SAMPLED, STATIC, LINES = "exact", "sampled", "static", "lines"
"""Values of `BlockRow.method`."""

CALLS = (Flow.CALL, Flow.INDIRECT_CALL)


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One basic block.

    `code` is its bytes in hexadecimal, `isa` the instruction set (as `uname -m` names the
    machine), `length` its instructions and `size` its bytes. `occurrences` is how often it was
    executed (`method` "exact"), how often its first source line was in a run of the program for
    another instruction set ("lines"), or how many samples met it ("sampled"); None for a block of a
    file alone ("static"). `share` is its part (0 to 1) of the occurrences of all blocks of its
    benchmark, `time_share` its part of all instructions executed or of all samples.
    `address` is as the module's own headers number it, `offset` counts from the function's
    begin. `loop` is "self", "inner" or empty; `call` says that it ends in a call, `memory` how many
    of its instructions access memory, `simd` which SIMD sets it uses (separated by spaces) and
    `simd_width` the widest vector in bits (0: none). `merged` is the number of places whose
    equal bytes are one row (1 where they are not merged).
    """

    code: str
    isa: str
    length: int
    size: int
    occurrences: int | None
    share: float | None
    time_share: float | None
    method: str
    function: str
    offset: int
    module: str
    address: int
    file: str
    line: int
    benchmark: str
    loop: str
    call: bool
    memory: int
    simd: str
    simd_width: int
    merged: int = 1

    @property
    def name(self) -> str:
        """The block's name: function and offset, or module and address."""
        place = self.function or PurePath(self.module).name or "code"
        return f"{place}+{self.offset if self.function else self.address:#x}"

    @property
    def bytes(self) -> bytes:
        """Its bytes."""
        return bytes.fromhex(self.code)

    def values(self) -> dict[str, Any]:
        """Its columns by name."""
        return asdict(self)


COLUMNS = tuple(field.name for field in fields(BlockRow))


class Facts(NamedTuple):
    """What a block's bytes say of it, wherever it stands."""

    length: int
    call: bool
    memory: int
    simd: str
    simd_width: int


def instructions(isa: Isa, code: bytes, address: int = 0) -> list[tuple[int, bytes]]:
    """(address, bytes) of each instruction of a block."""
    return [(i.start, code[i.start - address : i.end - address]) for i in decode(isa, code, address)]


def facts(isa: Isa, code: bytes) -> Facts:
    """What `code` is, instruction by instruction."""
    return _facts(isa.name, code)


@lru_cache(maxsize=1 << 17)
def _facts(name: str, code: bytes) -> Facts:
    isa = registry.for_machine(name)
    known: list[Instruction] = [isa.describe(part) for _, part in instructions(isa, code)]
    simd = [i.simd for i in known if i.simd is not None]
    return Facts(
        length=len(known),
        call=bool(known) and known[-1].flow in CALLS,
        memory=sum(i.reads_memory or i.writes_memory for i in known),
        simd=" ".join(sorted({s.set for s in simd})),
        simd_width=max((s.width for s in simd if not s.scalar), default=0),
    )


def with_shares(rows: Iterable[BlockRow]) -> list[BlockRow]:
    """The rows, those that occurred most first, with their shares of each benchmark worked out anew."""
    rows = list(rows)
    occurrences: dict[str, int] = {}
    weights: dict[str, int] = {}
    for row in rows:
        if row.occurrences is not None:
            occurrences[row.benchmark] = occurrences.get(row.benchmark, 0) + row.occurrences
            weights[row.benchmark] = weights.get(row.benchmark, 0) + weight(row)
    out = [
        row
        if row.occurrences is None
        else replace(
            row,
            share=row.occurrences / (occurrences[row.benchmark] or 1),
            time_share=weight(row) / (weights[row.benchmark] or 1),
        )
        for row in rows
    ]
    return sorted(out, key=lambda row: (row.benchmark, -weight(row), row.module, row.address))


def weight(row: BlockRow) -> int:
    """What a block counts for in time: instructions executed in it, or samples."""
    return (row.occurrences or 0) * (row.length if row.method in (EXACT, LINES) else 1)


class Filters(NamedTuple):
    """Which rows are wanted: those with at least `min_share` (0 to 1) of occurrences or of time, in
    an innermost loop, without a call, in one of `modules` (a file's name or path; empty: any)."""

    min_share: float = 0.0
    loops_only: bool = False
    no_calls: bool = False
    modules: Sequence[str] = ()

    def keep(self, row: BlockRow) -> bool:
        """Whether a row is wanted."""
        return (
            max(row.share or 0.0, row.time_share or 0.0) >= self.min_share
            and not (self.loops_only and not row.loop)
            and not (self.no_calls and row.call)
            and (not self.modules or any(_is_of(row.module, module) for module in self.modules))
        )


def _is_of(path: str, module: str) -> bool:
    name = PurePath(path).name
    return module in (path, name) or name.startswith(f"{module}.")


def merged(rows: Iterable[BlockRow]) -> list[BlockRow]:
    """One row for all of a benchmark whose bytes are equal: the hottest one, with their occurrences and
    shares added up."""
    groups: dict[tuple[str, str, str, str], list[BlockRow]] = {}
    for row in rows:
        groups.setdefault((row.benchmark, row.isa, row.method, row.code), []).append(row)
    out = []
    for group in groups.values():
        first = max(group, key=lambda row: row.occurrences or 0)
        counted = [row for row in group if row.occurrences is not None]
        out.append(
            replace(
                first,
                occurrences=sum(row.occurrences or 0 for row in counted) if counted else None,
                share=sum(row.share or 0.0 for row in counted) if counted else None,
                time_share=sum(row.time_share or 0.0 for row in counted) if counted else None,
                merged=sum(row.merged for row in group),
            )
        )
    return sorted(out, key=lambda row: (row.benchmark, -weight(row), row.module, row.address))
