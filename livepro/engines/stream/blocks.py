"""The blocks that streams name, with the accesses of their instructions: static, as growing arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from livepro.isa.access import Access
from livepro.isa.base import Isa
from livepro.model import Flow
from livepro.model.arrays import ranges

FLOWS = tuple(Flow)
"""What `StaticTables.flow` counts by."""


class StaticTables(NamedTuple):
    """All that is static about the blocks of one process image, as arrays; entries behind those in use
    are zero.

    Block b has the instructions from `first[b]` to `first[b + 1]`; an instruction i the accesses from
    `access[i]` to `access[i + 1]`. `address` (uint64), `bytes` (int64) and `flow` (index in `FLOWS`) are
    those of each instruction, `target` (uint64) where it leads directly if it does (else 0). `pattern`,
    `size`, `kind`, `lanes` and its instruction, the `owner` (int64), are those of each access. `words[b]` are
    the words of a whole record, its first included.
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
    owner: npt.NDArray[np.int64]
    known: int
    """How many blocks there are."""
    bare: bool
    """Whether no block has accesses: its record is one word."""


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
    "owner": np.int64,
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
            self.new = []
            self.extend(new)
        return self._data

    def extend(self, values: Sequence[int] | npt.NDArray[Any]) -> None:
        """Add many values, behind all that are there."""
        if self.new:
            self.array()
        end = self._length + len(values)
        if end >= len(self._data):
            grown = np.zeros(max(2 * len(self._data), end + 1), self._data.dtype)
            grown[: self._length] = self._data[: self._length]
            self._data = grown
        self._data[self._length : end] = values
        self._length = end


class KeptBlocks(NamedTuple):
    """Blocks of a module, to be put back in another run. By block: addresses from the module's first byte on
    (int64), instructions, words of a record, and where the last instruction leads (int64 like the addresses;
    `NOWHERE`). By instruction: bytes (`steps`), `flows`, how many `accesses`. By access the rest."""

    pcs: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    steps: npt.NDArray[np.uint8]
    code: npt.NDArray[np.uint8]
    words: npt.NDArray[np.int32]
    flows: npt.NDArray[np.uint8]
    targets: npt.NDArray[np.int64]
    accesses: npt.NDArray[np.uint8]
    patterns: npt.NDArray[np.uint8]
    sizes: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint8]
    lanes: npt.NDArray[np.uint8]


NOWHERE = -(1 << 63)
NO_BLOCKS = KeptBlocks(*[np.zeros(0, np.int64)] * len(KeptBlocks._fields))  # type: ignore[arg-type]


class StreamBlock(NamedTuple):
    """A block of a stream: its number, and the accesses of each of its instructions."""

    number: int
    address: int
    accesses: tuple[tuple[Access, ...], ...]

    def words(self, count: int) -> int:
        """The words of its first `count` instructions' accesses."""
        return sum(access.words for accesses in self.accesses[:count] for access in accesses)


class _Made(Sequence[StreamBlock]):
    """The blocks themselves, made when they are asked for: of most blocks only the tables are."""

    def __init__(self, blocks: StreamBlocks, of: Callable[[bytes, int], tuple[Access, ...]]) -> None:
        self._blocks = blocks
        self._of = of
        self._made: dict[int, StreamBlock] = {}

    def __len__(self) -> int:
        return len(self._blocks.addresses)

    @overload
    def __getitem__(self, number: int) -> StreamBlock: ...

    @overload
    def __getitem__(self, number: slice) -> list[StreamBlock]: ...

    def __getitem__(self, number: int | slice) -> StreamBlock | list[StreamBlock]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        found = self._made.get(number)
        if found is None:
            blocks = self._blocks
            at, code, accesses = blocks.addresses[number], blocks.codes[number], []
            for size in blocks.sizes[number]:
                accesses.append(self._of(code[:size], at))
                code = code[size:]
                at += size
            found = self.made(StreamBlock(number, blocks.addresses[number], tuple(accesses)))
        return found

    def made(self, block: StreamBlock) -> StreamBlock:
        """A block that has been made."""
        self._made[block.number] = block
        return block


def _no_accesses(code: bytes, address: int) -> tuple[Access, ...]:
    return ()


class StreamBlocks:
    """The blocks of one process image, numbered from 0 in the order in which they were met.

    A block is known by its address and its bytes. For one thread; what `tables` gives may be read by others.
    By number there are `addresses`, `codes`, and `sizes` of their instructions, in bytes. Where the stream
    has no addresses (`accessing`), no instruction accesses anything.
    """

    def __init__(self, isa: Isa, *, addresses: bool = True) -> None:
        self.accessing = addresses
        self._of = isa.accesses if addresses else _no_accesses
        self._known: dict[tuple[int, bytes], int] = {}
        self._columns = {name: _Column(kind, name in ("first", "access")) for name, kind in _TYPES.items()}
        self.codes: list[bytes] = []
        self.sizes: list[bytes] = []
        self.addresses: list[int] = []  # grows last: who counts them finds the others
        self._made = _Made(self, self._of)

    def __len__(self) -> int:
        return len(self.addresses)

    @property
    def blocks(self) -> Sequence[StreamBlock]:
        """The blocks, by number."""
        return self._made

    @property
    def instructions(self) -> int:
        """Instructions of all blocks."""
        return len(self._columns["address"])

    def block(
        self, address: int, code: bytes, sizes: bytes, flows: Sequence[Flow], target: int
    ) -> StreamBlock:
        """The block with these bytes at `address`; `sizes` are those of its instructions, `target` where
        its last one leads directly (0: nowhere)."""
        number = self._known.get((address, code))
        if number is not None:
            return self._made[number]
        at, accesses = 0, []
        columns, of = self._columns, self._of
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
            columns["owner"].new += [len(columns["address"]) - 1] * len(each)
            access += len(each)
            columns["access"].new.append(access)
            at += size
        columns["bytes"].new += sizes
        columns["flow"].new += [_FLOW_NUMBERS[flow] for flow in flows]
        columns["target"].new += [0] * (len(sizes) - 1) + [target]
        columns["words"].new.append(words)
        columns["first"].new.append(len(columns["address"]))
        number = self._known[address, code] = len(self.addresses)
        self.codes.append(code)
        self.sizes.append(sizes)
        self.addresses.append(address)
        return self._made.made(StreamBlock(number, address, tuple(accesses)))

    def number_of(self, address: int, code: bytes) -> int:
        """The number of a block. Raises KeyError for one that is not known."""
        return self._known[address, code]

    def tables(self) -> StaticTables:
        """The arrays as they are now; what is in them stays as it is."""
        columns = {name: column.array() for name, column in self._columns.items()}
        return StaticTables(**columns, known=len(self.addresses), bare=not self.accessing)

    # -- kept from run to run

    def kept(self, numbers: npt.NDArray[np.int64], origin: int) -> KeptBlocks:
        """The blocks with these numbers, apart from where their module begins (`origin`)."""
        tables = self.tables()
        lengths = tables.first[numbers + 1] - tables.first[numbers]
        rows = ranges(tables.first[numbers], lengths)
        accesses = tables.access[rows + 1] - tables.access[rows]
        of = ranges(tables.access[rows], accesses)
        targets = tables.target[rows[np.cumsum(lengths) - 1]].view(np.int64)
        address = tables.address[tables.first[numbers]].view(np.int64)
        return KeptBlocks(
            pcs=address - origin,
            lengths=lengths.astype(np.int32),
            steps=tables.bytes[rows].astype(np.uint8),
            code=np.frombuffer(b"".join([self.codes[n] for n in numbers.tolist()]), np.uint8),
            words=tables.words[numbers].astype(np.int32),
            flows=tables.flow[rows],
            targets=np.where(targets == 0, NOWHERE, targets - origin),
            accesses=accesses.astype(np.uint8),
            patterns=tables.pattern[of],
            sizes=tables.size[of].astype(np.int32),
            kinds=tables.kind[of],
            lanes=tables.lanes[of],
        )

    def put_back(self, kept: KeptBlocks, origin: int) -> npt.NDArray[np.int64]:
        """Add kept blocks of a module that begins at `origin`; their numbers."""
        lengths = kept.lengths.astype(np.int64)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        bytes_before = np.append(0, np.cumsum(kept.steps, dtype=np.int64))
        cuts = bytes_before[np.append(starts, len(kept.steps))].tolist()
        code, steps = kept.code.tobytes(), kept.steps.tobytes()
        codes = [code[begin:end] for begin, end in pairwise(cuts)]
        sizes = [steps[begin:end] for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        pcs = (kept.pcs + origin).tolist()
        targets = np.where(kept.targets == NOWHERE, 0, kept.targets + origin)
        if any(pair in self._known for pair in zip(pcs, codes, strict=True)):
            flows = [FLOWS[number] for number in kept.flows.tolist()]
            rows = zip(pcs, codes, sizes, starts.tolist(), ends.tolist(), targets.tolist(), strict=True)
            return np.array(
                [self.block(pc, c, s, flows[b:e], target).number for pc, c, s, b, e, target in rows], np.int64
            )
        count, columns = len(lengths), self._columns
        numbers, before = np.arange(len(self), len(self) + count), self.instructions
        within = bytes_before[:-1] - np.repeat(bytes_before[starts], lengths)
        all_targets = np.zeros(len(kept.steps), np.int64)
        all_targets[ends - 1] = targets
        for name, values in (
            ("address", (np.repeat(kept.pcs + origin, lengths) + within).view(np.uint64)),
            *(("bytes", kept.steps), ("flow", kept.flows), ("target", all_targets.view(np.uint64))),
            ("access", np.cumsum(kept.accesses, dtype=np.int64) + len(columns["pattern"])),
            ("owner", before + np.repeat(np.arange(len(kept.steps)), kept.accesses)),
            *(("pattern", kept.patterns), ("size", kept.sizes), ("kind", kept.kinds), ("lanes", kept.lanes)),
            *(("words", kept.words), ("first", ends + before)),
        ):
            columns[name].extend(values)
        self._known.update(zip(zip(pcs, codes, strict=True), numbers.tolist(), strict=True))
        self.codes += codes
        self.sizes += sizes
        self.addresses += pcs
        return numbers
