"""Static facts of the instructions that streams name, found out once for each block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.analyses.itypes import Grouping
from livepro.engines.stream.blocks import StreamBlocks
from livepro.events.spans.column import Column
from livepro.events.spans.listing import Listing
from livepro.isa.base import Isa
from livepro.isa.operands import Register, RegisterKind
from livepro.mica.plain import PlainBlocks
from livepro.mica.settings import MicaDialect
from livepro.model import Flow
from livepro.model.itypes import ItypesSpec

_TRACKED = {
    MicaDialect.MICA: frozenset(
        (RegisterKind.GENERAL, RegisterKind.X87, RegisterKind.MMX, RegisterKind.VECTOR)
    ),
    MicaDialect.EXACT: frozenset(RegisterKind) - {RegisterKind.OTHER},
}


FIRST = 2
"""What is added to registers' numbers in `usual`: 0 is one that nothing writes, 1 one that nothing reads."""


class Facts:
    """Facts of the instructions of one process image, by the numbers that its streams' tables give them.

    `reads_at`, `writes_at`: where the registers that an instruction reads, and those that it writes, begin in
    `registers` (the next instruction's reads are the end). `usual`: at most two of
    those read (bits 0 and 16) and one written (32), and whether there are more (48). `operands`: its register
    operands. `sites`: its
    address as a small number, `branches`: the same of conditional branches alone (0 for others). `types`:
    which groups it is in, a row of `groups_of_types`. Arrays have zeros behind the instructions there are.
    `listing` has what their events are made by, `plain` what analyses take in records by that do so
    themselves (it is theirs to update).
    """

    def __init__(self, isa: Isa, blocks: StreamBlocks, dialect: MicaDialect, spec: ItypesSpec | None) -> None:
        self._isa = isa
        self._blocks = blocks
        self._dialect = dialect
        self.listing = Listing(mica=dialect is MicaDialect.MICA)
        self.plain = PlainBlocks()
        self._grouping = Grouping(spec)
        self._seen = 0
        self._numbers: dict[str, int] = {}
        self._sites: dict[int, int] = {}
        self._branches: dict[int, int] = {}
        self._type_of: dict[frozenset[str], int] = {}
        self._known: dict[bytes, tuple[list[int], list[int], int, int, bool]] = {}
        self._columns = {
            "reads_at": Column(np.int64, 0),
            "writes_at": Column(np.int64),
            "registers": Column(np.int64),
            "usual": Column(np.int64),
            "operands": Column(np.int64),
            "sites": Column(np.int64),
            "types": Column(np.int64),
            "addresses": Column(np.int64),
            "bytes": Column(np.int64),
            "branches": Column(np.int64),
        }
        self.groups_of_types: npt.NDArray[np.int64] = np.zeros((0, len(self._grouping.names)), np.int64)
        self.others: dict[str, None] = {}
        """Categories of instructions in the group `other`, in the order in which they were met."""

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the groups, in order."""
        return self._grouping.names

    @property
    def registers_known(self) -> int:
        """How many registers there are."""
        return len(self._numbers)

    @property
    def sites_known(self) -> int:
        """How many addresses there are."""
        return len(self._sites)

    @property
    def branches_known(self) -> int:
        """How many conditional branches there are."""
        return len(self._branches)

    @property
    def branch_addresses(self) -> list[int]:
        """The addresses of the conditional branches, by number."""
        return list(self._branches)

    def update(self) -> None:
        """Look at the blocks that are new."""
        blocks = self._blocks
        known = len(blocks)
        if self._seen == known:
            return
        rows: dict[str, list[int]] = {name: [] for name in self._columns}
        end = self._columns["registers"].length
        for number in range(self._seen, known):
            address, code, at = blocks.addresses[number], blocks.codes[number], 0
            sizes = blocks.sizes[number]
            for size in sizes:
                encoding = code[at : at + size]
                reads, writes, operands, kind, branch = self._known.get(encoding) or self._learn(encoding)
                rows["writes_at"].append(end + len(reads))
                rows["registers"] += reads
                rows["registers"] += writes
                end += len(reads) + len(writes)
                rows["reads_at"].append(end)
                rows["usual"].append(_usual(reads, writes))
                rows["operands"].append(operands)
                rows["types"].append(kind)
                place = address + at
                rows["sites"].append(self._sites.setdefault(place, len(self._sites)))
                rows["addresses"].append(place - (1 << 64) if place >> 63 else place)
                rows["bytes"].append(size)
                rows["branches"].append(
                    self._branches.setdefault(place, len(self._branches)) if branch else 0
                )
                at += size
        for name, values in rows.items():
            self._columns[name].add(values)
        self._seen = known

    def _learn(self, encoding: bytes) -> tuple[list[int], list[int], int, int, bool]:
        operands = self._isa.operands(encoding)
        described = self._isa.describe(encoding)
        groups = self._grouping.groups(described)
        kind = self._type_of.get(groups)
        if kind is None:
            kind = self._type_of[groups] = len(self._type_of)
            row = [[name in groups for name in self._grouping.names]]
            self.groups_of_types = np.concatenate((self.groups_of_types, np.array(row, np.int64)))
        if self._grouping.names[-1] in groups:
            self.others.setdefault(described.category)
        branch = described.flow is Flow.BRANCH
        found = self._tracked(operands.reads), self._tracked(operands.writes), operands.number, kind, branch
        self._known[encoding] = found
        return found

    def _tracked(self, registers: tuple[Register, ...]) -> list[int]:
        """The numbers of the registers that are tracked, each once."""
        exact = self._dialect is MicaDialect.EXACT
        tracked = _TRACKED[self._dialect]
        names = dict.fromkeys(r.whole if exact else r.name for r in registers if r.kind in tracked)
        return [self._numbers.setdefault(name, len(self._numbers)) for name in names]

    # -- the arrays

    @property
    def reads_at(self) -> npt.NDArray[np.int64]:
        return self._columns["reads_at"].data

    @property
    def writes_at(self) -> npt.NDArray[np.int64]:
        return self._columns["writes_at"].data

    @property
    def registers(self) -> npt.NDArray[np.int64]:
        return self._columns["registers"].data

    @property
    def usual(self) -> npt.NDArray[np.int64]:
        return self._columns["usual"].data

    @property
    def operands(self) -> npt.NDArray[np.int64]:
        return self._columns["operands"].data

    @property
    def sites(self) -> npt.NDArray[np.int64]:
        return self._columns["sites"].data

    @property
    def types(self) -> npt.NDArray[np.int64]:
        return self._columns["types"].data

    @property
    def addresses(self) -> npt.NDArray[np.int64]:
        return self._columns["addresses"].data

    @property
    def bytes(self) -> npt.NDArray[np.int64]:
        return self._columns["bytes"].data

    @property
    def branches(self) -> npt.NDArray[np.int64]:
        return self._columns["branches"].data


def _usual(reads: list[int], writes: list[int]) -> int:
    """See `Facts.usual`."""
    first, second = [*(register + FIRST for register in reads[:2]), 0, 0][:2]
    written = writes[0] + FIRST if writes else 1
    more = len(reads) > 2 or len(writes) > 1
    return first | second << 16 | written << 32 | more << 48
