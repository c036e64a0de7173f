"""From a run's counts to rows: how often every basic block was executed.

An engine counts blocks from wherever control came in up to the next control-flow
instruction, so its blocks overlap. What it knows of each instruction does not: the
executions at one address, all its blocks together. A file's functions are cut as
`split` does it, and in addition wherever control was seen to come in (by a jump table, for
one); a block's occurrences are the executions of its first instruction. Code that
is in no function of a file (JIT code, code that was changed) is cut where control came in.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro import isa as registry
from livepro.blocks.code import CodeFile, Function, open_code
from livepro.blocks.loops import innermost
from livepro.blocks.rows import EXACT, BlockRow, facts, with_shares
from livepro.blocks.split import StaticBlock, decode
from livepro.blocks.static import Describer, loop_kind
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.linux.symbols import VDSO
from livepro.model import BlockTable, ProcessResult, RunResult


class Seen(NamedTuple):
    """A block as the engine counted it: its place as the module numbers it, its bytes, the bytes of each
    instruction and the executions of each, and the symbol that holds it."""

    address: int
    code: bytes
    sizes: list[int]
    executions: list[int]
    function: str

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + len(self.code)


@dataclass
class ModuleBlocks:
    """All that a run executed of one module."""

    isa: Isa
    seen: list[Seen] = field(default_factory=list)


def run_rows(result: RunResult, benchmark: str = "") -> list[BlockRow]:
    """The basic blocks that a run executed, those with the most executed instructions first.

    Blocks of one file are added up over all processes and threads; those of memory
    that is no file stay apart by process.
    """
    modules: dict[tuple[str, int], ModuleBlocks] = {}
    for number, process in enumerate(result.processes):
        isa = registry.for_machine(process.machine)
        for module, seen in _seen(process):
            in_file = module.startswith("/") or module == VDSO
            key = module, -1 if in_file else number
            modules.setdefault(key, ModuleBlocks(isa)).seen.append(seen)
    rows: list[BlockRow] = []
    for (module, _), blocks in modules.items():
        rows += _module_rows(module, blocks, benchmark)
    return with_shares(rows)


def _seen(process: ProcessResult) -> Iterator[tuple[str, Seen]]:
    table = process.table
    executions = np.zeros(len(table.form), np.uint64)
    for thread in process.threads:
        executions += thread.executions(table)
    for row in np.flatnonzero(_any(table, executions)).tolist():
        within = slice(int(table.start[row]), int(table.start[row + 1]))
        times = executions[within]
        # What follows an exit was decoded with it, and may be no code.
        last = int(np.flatnonzero(times)[-1]) + 1
        sizes = table.step[within][:last].tolist()
        code = table.code[row][: sum(sizes)]
        place = int(table.offset[row])
        yield table.module[row], Seen(place, code, sizes, times[:last].tolist(), table.function[row])


def _any(table: BlockTable, executions: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Whether anything of each block was executed (bool, B)."""
    if not len(table):
        return np.zeros(0, np.bool_)
    return np.add.reduceat(executions, table.start[:-1]) > 0


def _module_rows(module: str, blocks: ModuleBlocks, benchmark: str) -> Iterator[BlockRow]:
    loose = blocks.seen
    if module.startswith("/") or module == VDSO:
        try:
            file = open_code(module)
        except LiveproError:
            file = None  # deleted, replaced, or no ELF file: the counts are there all the same
        if file is not None:
            try:
                counts = FileCounts(file, blocks.seen)
                yield from counts.rows(Describer(file, module, benchmark))
                loose = counts.loose
            finally:
                file.close()
    yield from _loose_rows(module, blocks.isa, loose, benchmark)


class FileCounts:
    """Executions of a file's instructions, by address. `loose` are the blocks that the file's functions do
    not tell of: their code is another than the file's, or they begin between its instructions."""

    def __init__(self, file: CodeFile, seen: Sequence[Seen]) -> None:
        self._file = file
        self.loose: list[Seen] = []
        own: list[Seen] = []
        for block in seen:
            same = file.isa.name and file.read(block.address, block.end) == block.code
            (own if same else self.loose).append(block)
        self._entries = sorted(entries(file.isa, own))
        known: dict[Function, set[int]] = {}
        self._counts: Counter[int] = Counter()
        self._blocks: dict[Function, Sequence[StaticBlock]] = {}
        for block in own:
            functions = self._functions(block)
            if functions is None or not all(
                at in self._addresses(known, function) for at, function in functions.items()
            ):
                self.loose.append(block)
                continue
            at = block.address
            for size, times in zip(block.sizes, block.executions, strict=True):
                self._counts[at] += times
                at += size

    def _functions(self, block: Seen) -> dict[int, Function] | None:
        """The function of each instruction; None where one has none."""
        out: dict[int, Function] = {}
        at = block.address
        function: Function | None = None
        for size in block.sizes:
            if function is None or at >= function.end or block.end > function.end:
                function = self._file.find(at)
            if function is None:
                return None
            out[at] = function
            at += size
        return out

    def _addresses(self, known: dict[Function, set[int]], function: Function) -> set[int]:
        if function not in known:
            first, last = (bisect_left(self._entries, at) for at in (function.start, function.end))
            found = self._file.split_at(function, self._entries[first:last])
            known[function] = set(found.addresses)
            self._blocks[function] = found.blocks
        return known[function]

    def rows(self, describer: Describer) -> Iterator[BlockRow]:
        """The blocks that were executed."""
        for function, blocks in self._blocks.items():
            for block in blocks:
                times = self._counts.get(block.start, 0)
                if times and self._file.find(block.start) == function:
                    yield describer.row(function, block, blocks, EXACT, times)


def entries(isa: Isa, seen: Sequence[Seen]) -> frozenset[int]:
    """Where control was seen to come in: where blocks begin, except behind one that does not end in
    control flow, where the engine had only cut it."""
    cut = set()
    for block in seen:
        last = isa.describe(block.code[len(block.code) - block.sizes[-1] :])
        if not last.flow.ends_block:
            cut.add(block.end)
    return frozenset({block.address for block in seen} - cut)


def _loose_rows(module: str, isa: Isa, seen: Sequence[Seen], benchmark: str) -> Iterator[BlockRow]:
    starts = entries(isa, seen)
    counts: Counter[tuple[str, int, bytes]] = Counter()
    for block in seen:
        at = begin = block.address
        times = block.executions[0]
        for size, here in zip(block.sizes, block.executions, strict=True):
            if at in starts and at != begin:
                counts[block.function, begin, _part(block, begin, at)] += times
                begin, times = at, here
            at += size
        counts[block.function, begin, _part(block, begin, at)] += times
    functions: dict[str, list[tuple[StaticBlock, bytes, int]]] = defaultdict(list)
    for (function, address, code), times in counts.items():
        if times:
            decoded = list(decode(isa, code, address))
            flow, target = (decoded[-1].flow, decoded[-1].target) if decoded else (None, None)
            if flow is not None:
                block_ = StaticBlock(address, address + len(code), len(decoded), flow, target)
                functions[function].append((block_, code, times))
    for function, found in functions.items():
        found.sort(key=lambda item: item[0].start)
        inner = innermost([block for block, _, _ in found]) if function else frozenset()
        base = found[0][0].start
        for static, code, times in found:
            known = facts(isa, code)
            yield BlockRow(
                code=code.hex(),
                isa=isa.name,
                length=known.length,
                size=len(code),
                occurrences=times,
                share=None,
                time_share=None,
                method=EXACT,
                function=function,
                offset=static.start - base,
                module=module,
                address=static.start,
                file="",
                line=0,
                benchmark=benchmark,
                loop=loop_kind(static, inner),
                call=known.call,
                memory=known.memory,
                simd=known.simd,
                simd_width=known.simd_width,
            )


def _part(block: Seen, begin: int, end: int) -> bytes:
    return block.code[begin - block.address : end - block.address]
