"""What is static of blocks, worked out by compiled loops, against plain Python, for random code."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from livepro import isa
from livepro.cachesim import plain
from livepro.cachesim.counted import Fetches
from livepro.engines.stream.blocks import StreamBlock, StreamBlocks
from livepro.events.spans.listing import Listing
from livepro.events.spans.operand import READ1, READ2, REWRITE, WRITE, described
from livepro.isa.access import READ, Pattern
from livepro.isa.access import WRITE as WRITES

MACHINE = isa.for_machine("x86_64")


INSTRUCTIONS = [
    bytes.fromhex(code)
    for code in (
        *("488b07", "488906", "480107"),  # mov rax, [rdi]; mov [rsi], rax; add [rdi], rax
        *("50", "58", "ff37", "8f07"),  # push rax; pop rax; push [rdi]; pop [rdi]
        *("48a5", "48a7", "f348a5"),  # movsq; cmpsq; rep movsq
        *("90", "660f1f440000", "48b80807060504030201"),  # nop; nop; mov rax, imm64
        *("0f2807", "c5fe6f07", "c4e26d9204cf"),  # movaps xmm0, [rdi]; vmovdqu ymm0, [rdi]; vgatherdps
        *("7502", "c3", "e800000000"),  # jne; ret; call
    )
]


@pytest.fixture(scope="module")
def blocks() -> StreamBlocks:
    """Some thousand blocks of instructions with accesses of each kind, one behind the other."""
    draw = random.Random(1)
    code, address = b"".join(draw.choices(INSTRUCTIONS, k=30_000)), 0x40_1000
    out, at = StreamBlocks(MACHINE), 0
    while at < len(code) - 4096:
        block = MACHINE.decode_block(code[at : at + 4096], address + at)
        sizes = bytes(b - a for a, b in zip(block.addresses, block.addresses[1:], strict=False))
        out.block(block.address, block.code, sizes, block.flows, block.target or 0)
        at += len(block.code)
    return out


def listed(block: StreamBlock, *, mica: bool) -> list[tuple[int, int, int, int]] | None:
    """Word, size, slot and index of the instruction of each operand; None if accesses are not plain."""
    out, word = [], 1
    for index, accesses in enumerate(block.accesses):
        reads: list[tuple[int, int, int, int]] = []
        writes: list[tuple[int, int, int, int]] = []
        for access in accesses:
            if access.pattern is not Pattern.ONE:
                return None
            if access.kind & READ and not (mica and len(reads) > 1):
                size = reads[0][1] if mica and reads else access.size
                reads.append((word, size, READ2 if reads else READ1, index))
            if access.kind & WRITES and not (mica and writes):
                slot = REWRITE if access.kind & READ and not mica else WRITE
                writes.append((word, access.size, slot, index))
            word += access.words
        out += reads + writes
    return out


def fetches(address: int, sizes: bytes, bits: int) -> list[tuple[int, int, int]]:
    """The instructions that may fetch another line than the one before, with their first and last line."""
    out, latest = [], -1
    for index, size in enumerate(sizes):
        line, last = address >> bits, address + size - 1 >> bits
        if line != latest or line != last:
            out.append((index, line, last))
        latest = last
        address += size
    return out


@pytest.mark.parametrize("mica", [False, True])
def test_operands_are_listed(mica: bool, blocks: StreamBlocks) -> None:
    listing = Listing(mica=mica)
    tables = blocks.tables()
    listing.update(tables)
    listing.update(tables)  # nothing is new
    plain_of, at, words, operands = listing.arrays()
    seen = dict.fromkeys((READ1, READ2, WRITE, REWRITE, None), 0)
    for block in blocks.blocks:
        wanted, number, first = listed(block, mica=mica), block.number, int(tables.first[block.number])
        assert plain_of[number] == (wanted is not None)
        begin, end = at[number : number + 2].tolist()
        assert words[begin:end].tolist() == [word for word, _, _, _ in wanted or ()]
        assert operands[begin:end].tolist() == [
            described(first + index, size, slot) for _, size, slot, index in wanted or ()
        ]
        assert listing.lengths[first] == len(block.accesses)
        for slot in [slot for _, _, slot, _ in wanted] if wanted is not None else [None]:
            seen[slot] += 1
    assert all(seen[slot] for slot in (READ1, READ2, WRITE, None) + (() if mica else (REWRITE,)))


@pytest.mark.parametrize("bits", [4, 6])
def test_fetches_are_found(bits: int, blocks: StreamBlocks) -> None:
    tables = blocks.tables()
    found, laid_out = Fetches(bits), plain.PlainBlocks(bits, 32)
    found.listing.update(tables)
    found.update(tables)
    laid_out.update(tables, found.listing)
    rows, fetched, accesses = laid_out.arrays()
    crossed = 0
    for block in blocks.blocks:
        sizes, first = blocks.sizes[block.number], int(tables.first[block.number])
        wanted = fetches(block.address, sizes, bits)
        ends = [first + index for index, _, _ in wanted[1:]] + [first + len(sizes)]
        following = found.following[first : first + len(sizes)].tolist()
        assert following == [
            dict(zip([index for index, _, _ in wanted], ends, strict=True)).get(index, 0)
            for index in range(len(sizes))
        ]
        operands = listed(block, mica=False)
        row = rows[block.number << plain.BLOCK_BITS :][: 1 << plain.BLOCK_BITS].tolist()
        if operands is None:
            assert row[plain.WORDS] == 0
            continue
        assert row[plain.WORDS] == block.words(len(sizes)) + 1
        kept = [one for one in operands if one[2] != REWRITE]
        assert row[plain.FETCHES] == len(wanted)
        done = row[plain.ACCESSES_AT]
        for turn, (index, line, last) in enumerate(wanted):
            at = row[plain.FETCHES_AT] + turn << plain.FETCH_BITS
            one = fetched[at : at + (1 << plain.FETCH_BITS)].tolist()
            before = [k for k in kept if k[3] < ends[turn] - first]
            assert one == [line, last - line, first + index, row[plain.ACCESSES_AT] + len(before)]
            crossed += last != line
        for word, size, slot, index in kept:
            column = plain.DATA_WRITE if slot == WRITE else plain.DATA_READ
            packed = ((first + index) << plain.COLUMN_BITS | column) << plain.SIZE_BITS | min(size, 32)
            assert accesses[done] == packed << plain.WORD_BITS | word
            done += 1
    assert crossed
