"""Cutting straight code into basic blocks.

The *flow sites* of a range are the addresses behind its control-flow instructions
(jumps, branches, calls, returns, traps; not system calls), its *jump sites* the
targets of its direct jumps and branches that lie within it. The range is cut at
the union of both. Bytes that are no instruction are in no block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from livepro.isa.base import Isa
from livepro.model import Flow

_WINDOW = 1 << 12
"""Bytes that the decoder is given at a time: it copies what it is given, block by block."""

JUMPS = (Flow.JUMP, Flow.BRANCH)
"""Control flow whose direct target is a jump site; a call's target begins another function."""


class StaticBlock(NamedTuple):
    """The instructions in [start, end): `length` of them, the last with the control flow `flow`;
    `target` is where that leads if it is direct (None otherwise)."""

    start: int
    end: int
    length: int
    flow: Flow
    target: int | None


class Split(NamedTuple):
    """The blocks of one range of code, ascending and disjoint.

    `addresses` are those of its instructions, ascending. `undecodable` counts the bytes that
    are no instruction, `astray` the jumps that lead between two instructions' beginnings.
    """

    blocks: tuple[StaticBlock, ...]
    addresses: tuple[int, ...]
    undecodable: int
    astray: int

    def find(self, address: int) -> StaticBlock | None:
        """The block that holds `address`, by bisection; None where there is none."""
        at = bisect_right(self.blocks, address, key=lambda block: block.start) - 1
        return self.blocks[at] if at >= 0 and address < self.blocks[at].end else None


class Decoded(NamedTuple):
    """One instruction: the address of its first byte and of the one behind it, its control flow and
    direct target."""

    start: int
    end: int
    flow: Flow
    target: int | None


def decode(isa: Isa, code: bytes, address: int) -> Iterator[Decoded]:
    """The instructions of `code`, which stands at `address`, one behind the other.

    Bytes that are no instruction come as INVALID ones; what is cut off by the end of
    `code` does not come at all.
    """
    at = 0
    while at < len(code):
        window = code[at : at + _WINDOW]
        block = isa.decode_block(window, address + at)
        bounds = block.addresses
        last = len(block) - 1
        for i, flow in enumerate(block.flows):
            yield Decoded(bounds[i], bounds[i + 1], flow, block.target if i == last else None)
        if block.truncated and (not block.flows or at + len(window) == len(code)):
            return
        at = bounds[-1] - address


def split(
    isa: Isa, pieces: Iterable[tuple[int, bytes]], extent: tuple[int, int], entries: Sequence[int] = ()
) -> Split:
    """The basic blocks of a function that takes up `extent`, [start, end).

    `pieces` are its code as (address, bytes), ascending, without the data in between.
    `entries` are addresses where control is known to come in besides: the code is cut
    there, too, where an instruction begins.
    """
    code: list[Decoded] = []
    undecodable = 0
    for address, content in pieces:
        decoded = list(decode(isa, content, address))
        good = [i for i in decoded if i.flow is not Flow.INVALID]
        undecodable += len(content) - sum(i.end - i.start for i in good)
        code += good
    starts = {i.start for i in code}
    jumps = {
        i.target
        for i in code
        if i.flow in JUMPS and i.target is not None and extent[0] <= i.target < extent[1]
    }
    sites = jumps.union(entries)
    blocks: list[StaticBlock] = []
    begin = length = 0
    for i, instruction in enumerate(code):
        if not length:
            begin = instruction.start
        length += 1
        following = code[i + 1].start if i + 1 < len(code) else None
        if instruction.flow.ends_block or following != instruction.end or following in sites:
            blocks.append(StaticBlock(begin, instruction.end, length, instruction.flow, instruction.target))
            length = 0
    return Split(tuple(blocks), tuple(i.start for i in code), undecodable, len(jumps - starts))
