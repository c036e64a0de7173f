"""The blocks that streams name, with the accesses of their instructions: static, as growing arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.isa.access import Access
from livepro.isa.base import Isa
from livepro.model import Flow

FLOWS = tuple(Flow)
"""What `StaticTables.flow` counts by."""


class StaticTables(NamedTuple):
    """All that is static about the blocks of one process image, as arrays; entries behind those in use
    are zero.

    Block b has the instructions from `first[b]` to `first[b + 1]`; an instruction i the accesses from
    `access[i]` to `access[i + 1]`. `address` (uint64), `bytes` (int64) and `flow` (index in `FLOWS`) are
    those of each instruction, `target` (uint64) where it leads directly if it does (else 0). `pattern`,
    `size`, `kind` and `lanes` are those of each access. `words[b]` are the words of a whole record, its first
    included.
    """

    first: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    address: npt.NDArray[np.uint64]
    bytes: npt.NDArray[np.int64]
    flow: npt.NDArray[np.uint8]
    target: npt.NDArray[np.uint64]
    access: npt.NDArray[np.int64]
    pattern: npt.NDArray[np.uint8]
    size: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    lanes: npt.NDArray[np.uint8]


_FLOW_NUMBERS = {flow: number for number, flow in enumerate(FLOWS)}

_TYPES = {
    "first": np.int64,
    "words": np.int64,
    "address": np.uint64,
    "bytes": np.int64,
    "flow": np.uint8,
    "target": np.uint64,
    "access": np.int64,
    "pattern": np.uint8,
    "size": np.int64,
    "kind": np.uint8,
    "lanes": np.uint8,
}


class _Column:
    """An array that grows at its end; what has been added since it was last asked for is in `new`."""

    def __init__(self, kind: Any, length: int = 0) -> None:
        self._data = np.zeros(1024, kind)
        self._length = length
        self.new: list[int] = []

    def __len__(self) -> int:
        return self._length + len(self.new)

    def array(self) -> npt.NDArray[Any]:
        """All of it, and zeros behind."""
        new = self.new
        if new:
            end = self._length + len(new)
            if end >= len(self._data):
                grown = np.zeros(max(2 * len(self._data), end + 1), self._data.dtype)
                grown[: self._length] = self._data[: self._length]
                self._data = grown
            self._data[self._length : end] = new
            self._length = end
            self.new = []
        return self._data


class StreamBlock(NamedTuple):
    """A block of a stream: its number, and the accesses of each of its instructions."""

    number: int
    address: int
    accesses: tuple[tuple[Access, ...], ...]

    def words(self, count: int) -> int:
        """The words of its first `count` instructions' accesses."""
        return sum(access.words for accesses in self.accesses[:count] for access in accesses)


class StreamBlocks:
    """The blocks of one process image, numbered from 0 in the order in which they were met.

    A block is known by its address and its bytes. For one thread; what `tables` gives may be read by others.
    """

    def __init__(self, isa: Isa) -> None:
        self._isa = isa
        self._known: dict[tuple[int, bytes], StreamBlock] = {}
        self._columns = {name: _Column(kind, name in ("first", "access")) for name, kind in _TYPES.items()}
        self.blocks: list[StreamBlock] = []
        self.codes: list[bytes] = []
        self.sizes: list[bytes] = []

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def instructions(self) -> int:
        """Instructions of all blocks."""
        return len(self._columns["address"])

    def block(
        self, address: int, code: bytes, sizes: bytes, flows: Sequence[Flow], target: int
    ) -> StreamBlock:
        """The block with these bytes at `address`; `sizes` are those of its instructions, `target` where
        its last one leads directly (0: nowhere)."""
        found = self._known.get((address, code))
        if found is not None:
            return found
        at, accesses = 0, []
        columns, of = self._columns, self._isa.accesses
        access, words = len(columns["pattern"]), 1
        for size in sizes:
            each = of(code[at : at + size], address + at)
            accesses.append(each)
            columns["address"].new.append(address + at)
            for one in each:
                columns["pattern"].new.append(one.pattern)
                columns["size"].new.append(one.size)
                columns["kind"].new.append(one.kind)
                columns["lanes"].new.append(one.lanes)
                words += one.words
            access += len(each)
            columns["access"].new.append(access)
            at += size
        found = StreamBlock(len(self.blocks), address, tuple(accesses))
        columns["bytes"].new += sizes
        columns["flow"].new += [_FLOW_NUMBERS[flow] for flow in flows]
        columns["target"].new += [0] * (len(sizes) - 1) + [target]
        columns["words"].new.append(words)
        columns["first"].new.append(len(columns["address"]))
        self._known[address, code] = found
        self.codes.append(code)
        self.sizes.append(sizes)
        self.blocks.append(found)
        return found

    def tables(self) -> StaticTables:
        """The arrays as they are now; what is in them stays as it is."""
        return StaticTables(**{name: column.array() for name, column in self._columns.items()})
