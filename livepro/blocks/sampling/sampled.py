"""From samples to rows: every program counter looked up in the blocks of its symbol, by bisection."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from livepro import isa as registry
from livepro.blocks.code import CodeFile, Function, open_code
from livepro.blocks.rows import SAMPLED, BlockRow, facts, with_shares
from livepro.blocks.sampling.collect import Samples
from livepro.blocks.sampling.jit import Piece
from livepro.blocks.split import StaticBlock, split
from livepro.blocks.static import Describer, loop_kind
from livepro.errors import LiveproError
from livepro.linux.elf import virtual_addresses
from livepro.linux.sampling.spaces import ANONYMOUS, Located


class Sampled(NamedTuple):
    """The rows, and how many samples met no block, by module."""

    rows: list[BlockRow]
    elsewhere: Counter[str]


def sampled_rows(samples: Samples, benchmark: str = "") -> Sampled:
    """The blocks that samples met, those with the most samples first."""
    rows, elsewhere = placed_rows(samples.places, benchmark)
    machine = platform.machine()
    pieces: dict[Piece, Counter[int]] = {}
    for (piece, address), times in samples.generated.items():
        pieces.setdefault(piece, Counter())[address] += times
    for piece, counts in pieces.items():
        found = split(registry.for_machine(machine), [(piece.start, piece.code)], (piece.start, piece.end))
        of_block: Counter[StaticBlock] = Counter()
        for address, times in counts.items():
            block = found.find(address)
            if block is None:
                elsewhere[ANONYMOUS] += times
            else:
                of_block[block] += times
        rows += [
            _piece_row(piece, block, found.blocks, times, benchmark, machine)
            for block, times in of_block.items()
        ]
    return Sampled(with_shares(rows), elsewhere)


def placed_rows(places: Mapping[Located, int], benchmark: str = "") -> tuple[list[BlockRow], Counter[str]]:
    """Rows (without shares yet) of the blocks at places in files, and the samples in none, by module."""
    elsewhere: Counter[str] = Counter()
    modules: dict[str, Counter[int]] = {}
    for place, times in places.items():
        modules.setdefault(place.module, Counter())[place.offset] += times
    rows: list[BlockRow] = []
    for module, counts in modules.items():
        try:
            file = open_code(module)
        except LiveproError:
            elsewhere[module] += counts.total()
            continue
        try:
            rows += _file_rows(file, module, counts, benchmark, elsewhere)
        finally:
            file.close()
    return rows, elsewhere


def _file_rows(
    file: CodeFile, module: str, counts: Counter[int], benchmark: str, elsewhere: Counter[str]
) -> Iterable[BlockRow]:
    offsets = np.array(list(counts), np.uint64)
    addresses, _ = virtual_addresses(file.image.segments, offsets)
    of_block: Counter[tuple[Function, StaticBlock]] = Counter()
    for address, times in zip(addresses.tolist(), counts.values(), strict=True):
        found = file.block_at(address)
        if found is None:
            elsewhere[module] += times
        else:
            of_block[found] += times
    describer = Describer(file, module, benchmark)
    for (function, block), times in of_block.items():
        yield describer.row(function, block, file.split(function).blocks, SAMPLED, times)


def _piece_row(
    piece: Piece,
    block: StaticBlock,
    blocks: tuple[StaticBlock, ...],
    times: int,
    benchmark: str,
    machine: str,
) -> BlockRow:
    from livepro.blocks.loops import innermost

    code = piece.code[block.start - piece.start : block.end - piece.start]
    known = facts(registry.for_machine(machine), code)
    return BlockRow(
        code=code.hex(),
        isa=machine,
        length=known.length,
        size=len(code),
        occurrences=times,
        share=None,
        time_share=None,
        method=SAMPLED,
        function=piece.name,
        offset=block.start - piece.start,
        module=ANONYMOUS,
        address=block.start,
        file="",
        line=0,
        benchmark=benchmark,
        loop=loop_kind(block, innermost(blocks)),
        call=known.call,
        memory=known.memory,
        simd=known.simd,
        simd_width=known.simd_width,
    )
