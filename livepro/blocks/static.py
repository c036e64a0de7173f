"""The blocks of a file as rows, without a run."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from livepro.blocks.code import CodeFile, Function
from livepro.blocks.loops import innermost
from livepro.blocks.rows import INNER, NONE, SELF, STATIC, BlockRow, facts
from livepro.blocks.split import StaticBlock
from livepro.errors import LiveproError


class Describer:
    """Makes rows of one file's blocks; loops are found once for each function."""

    def __init__(self, file: CodeFile, module: str = "", benchmark: str = "") -> None:
        self._file = file
        self._module = module or file.path
        self._benchmark = benchmark
        self._loops: dict[tuple[str, int], frozenset[int]] = {}

    def row(
        self,
        function: Function,
        block: StaticBlock,
        blocks: Sequence[StaticBlock],
        method: str = STATIC,
        occurrences: int | None = None,
    ) -> BlockRow:
        """The row of `block`, one of a function's `blocks`."""
        file = self._file
        key = function.name, function.start
        if key not in self._loops:
            self._loops[key] = innermost(blocks)
        code = file.read(block.start, block.end)
        known = facts(file.isa, code)
        return BlockRow(
            code=code.hex(),
            isa=file.isa.name,
            length=known.length,
            size=len(code),
            occurrences=occurrences,
            share=None,
            time_share=None,
            method=method,
            function=function.name,
            offset=block.start - function.start,
            module=self._module,
            address=block.start,
            file="",
            line=0,
            benchmark=self._benchmark,
            loop=loop_kind(block, self._loops[key]),
            call=known.call,
            memory=known.memory,
            simd=known.simd,
            simd_width=known.simd_width,
        )


def loop_kind(block: StaticBlock, inner: frozenset[int]) -> str:
    """Whether a block is its own successor, or in an innermost loop."""
    if block.target == block.start:
        return SELF
    return INNER if block.start in inner else NONE


def chosen(file: CodeFile, symbols: Sequence[str]) -> list[Function]:
    """The functions of these names; all where none is named. Raises LiveproError for a name that no
    function has, or when there are no functions at all."""
    if not file.functions:
        raise LiveproError(
            f"{file.path} has neither symbols nor unwind information: nothing tells where its functions are.",
            "Name a file that is not stripped of both, or measure a run: `livepro blocks run -- PROGRAM`.",
        )
    if not symbols:
        return list(file.functions)
    out: list[Function] = []
    for symbol in symbols:
        named = file.named(symbol) or file.named_otherwise(symbol)
        if not named:
            near = difflib.get_close_matches(symbol, {f.name for f in file.functions}, n=3)
            hint = f"Did you mean {' or '.join(near)}? " if near else ""
            raise LiveproError(
                f"There is no function '{symbol}' in {file.path}.",
                f"{hint}`nm -C` and `nm -DC` list a file's functions.",
            )
        out += named
    return out


def file_rows(file: CodeFile, functions: Sequence[Function]) -> Iterator[BlockRow]:
    """The blocks of these functions in order of address, each place once: a block of two functions that
    overlap is the innermost's."""
    describer = Describer(file)
    owners: dict[tuple[int, int], tuple[Function, StaticBlock]] = {}
    for function in sorted(functions, key=lambda f: (f.end - f.start, f.start)):
        for block in file.split(function).blocks:
            owners.setdefault(block[:2], (function, block))
    for _, (function, block) in sorted(owners.items()):
        yield describer.row(function, block, file.split(function).blocks)
