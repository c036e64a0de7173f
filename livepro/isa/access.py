"""What an instruction reads and writes in memory: static facts, and words that say where.

An access is a pattern with a fixed number of 64-bit words; the words say at which addresses
it happens when the instruction is executed. `expand` turns them into plain reads and writes.
Accesses of an instruction are listed in the order in which it makes them, reads first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

READ, WRITE, MODIFY = 1, 2, 3
"""Kinds of an access; one that modifies reads and then writes the same bytes."""

ALL_64 = (1 << 64) - 1


class Pattern(IntEnum):
    """Which addresses an access touches, and what its words are."""

    ONE = 0
    """`size` bytes. One word: the address."""
    STRING = 1
    """A repeated string operand, an element of `size` bytes each time. Two words: the address of the
    first element, and the one at which the next would have been: less than the first where
    the direction flag is set, equal where it was repeated zero times."""
    MASKED = 2
    """Lanes of `size` bytes, side by side. Two words: the address of lane 0, and a bit for each active
    lane. Adjacent active lanes are one access."""
    PACKED = 3
    """As MASKED, but active lanes are moved together in memory, from the address on."""
    LANES = 4
    """Gathers and scatters, lanes of `size` bytes. One word with a bit for each active lane, and
    one for each lane's address. Each active lane is one access."""
    SIZED = 5
    """Two words: the address and the number of bytes."""


class Access(NamedTuple):
    """One access of an instruction. `kind` is READ, WRITE or MODIFY; `lanes` those of a vector; `where`
    is the instruction set's own."""

    pattern: Pattern
    size: int
    kind: int
    lanes: int
    where: Any

    @property
    def words(self) -> int:
        """How many words it has."""
        if self.pattern is Pattern.ONE:
            return 1
        return 1 + self.lanes if self.pattern is Pattern.LANES else 2


class MachineState(Protocol):
    """The registers and the memory of a stopped thread."""

    @property
    def general(self) -> Any:
        """The general registers, as `RegisterLayout.structure`."""

    def vectors(self) -> bytes:
        """The vector registers, as the kernel gives them (x86-64: NT_X86_XSTATE)."""

    def read(self, address: int, size: int) -> bytes:
        """Its memory."""


def runs(mask: int, lanes: int) -> Iterator[tuple[int, int]]:
    """The groups of adjacent bits that are set, as (first, how many)."""
    lane = 0
    while lane < lanes:
        if mask >> lane & 1:
            first = lane
            while lane < lanes and mask >> lane & 1:
                lane += 1
            yield first, lane - first
        lane += 1


def expand(access: Access, words: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The (address, size) of each contiguous piece of memory that an access touches, in order."""
    pattern, size = access.pattern, access.size
    if pattern is Pattern.ONE:
        yield words[0], size
    elif pattern is Pattern.SIZED:
        yield words[0], words[1]
    elif pattern is Pattern.STRING:
        distance = words[1] - words[0]
        if distance >= 1 << 63 or distance < -(1 << 63):
            distance -= (1 << 64) * (1 if distance > 0 else -1)
        step = size if distance >= 0 else -size
        for turn in range(abs(distance) // size):
            yield words[0] + turn * step & ALL_64, size
    elif pattern is Pattern.LANES:
        for lane in range(access.lanes):
            if words[0] >> lane & 1:
                yield words[1 + lane], size
    else:
        mask = words[1] & (1 << access.lanes) - 1
        if pattern is Pattern.PACKED:
            mask = (1 << mask.bit_count()) - 1
        for first, many in runs(mask, access.lanes):
            yield words[0] + first * size & ALL_64, many * size


def pieces(accesses: Sequence[Access], words: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """All that an instruction with these accesses does, in order, as (READ or WRITE, address, size);
    `words` are those of all. The operands of a repeated string instruction take turns."""
    expanded = []
    at = 0
    for access in accesses:
        expanded.append((access, list(expand(access, words[at : at + access.words]))))
        at += access.words
    if accesses and all(access.pattern is Pattern.STRING for access in accesses):
        for turn in zip(*(found for _, found in expanded), strict=True):
            for access, (address, size) in zip(accesses, turn, strict=True):
                yield access.kind, address, size
        return
    for access, found in expanded:
        for kind in (READ, WRITE):
            if access.kind & kind:
                for address, size in found:
                    yield kind, address, size
