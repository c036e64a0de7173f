"""The program's basic blocks as the translator reads them: lengths, facts, targets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container
from dataclasses import dataclass
from operator import sub
from typing import Any

MOST_KNOWN = 1 << 18
"""Encodings whose meaning is remembered, when translations are dropped; libjvm has 100,000."""


@dataclass(slots=True)
class SourceBlock:
    """A basic block as decoded: `offsets` of its instructions and, last, of its end.

    `facts` are the instruction set's own, one for each instruction; all have
    `flow` (a model Flow), `ends` (whether it ends a basic block) and
    `condition_falls` (whether control may fall through such an end).
    `special` are the indices of those that are not just copied. `target` is
    where a direct terminator leads. `cut` says that the block ends
    without a terminator, before bytes that cannot be read or (`invalid`) decoded.
    `leaves` says that it ends with a return from a signal handler: what is behind one is
    not executed, and no part of the block.
    """

    pc: int
    code: bytes
    offsets: list[int]
    facts: list[Any]
    special: list[int]
    target: int
    cut: bool
    invalid: bool = False
    leaves: bool = False

    @property
    def end(self) -> int:
        """The address behind the block."""
        return self.pc + self.offsets[-1]

    def steps(self) -> bytes:
        """The sizes of its instructions, in bytes."""
        return bytes(map(sub, self.offsets[1:], self.offsets))


def cut_at(block: SourceBlock, places: Container[int]) -> SourceBlock:
    """The block up to the first instruction, behind its own first, that stands at one of `places`."""
    for count, offset in enumerate(block.offsets[1:-1], 1):
        if block.pc + offset in places:
            return _first(block, count)
    return block


def shortened(block: SourceBlock, size: int) -> SourceBlock:
    """Of the block what is in its first `size` bytes, its first instruction in any case."""
    if block.offsets[-1] <= size:
        return block
    return _first(block, max(1, bisect_right(block.offsets, size) - 1))


def _first(block: SourceBlock, count: int) -> SourceBlock:
    """The block up to its first `count` instructions, of more."""
    special = [index for index in block.special if index < count]
    offsets = block.offsets[: count + 1]
    code = block.code[: offsets[-1]]
    return SourceBlock(block.pc, code, offsets, block.facts[:count], special, 0, True)
