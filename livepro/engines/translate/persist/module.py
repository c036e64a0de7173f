"""The translation of one module, apart from where the module, its copy and livepro's memory are.

A module is a stable, file-backed executable mapping. Its copies fill a code
cache of its own, so that they can be lifted out with everything that was found
out on the way, kept (`livepro.kept.artifacts`), and put into another process at other
addresses: what depends on those is listed by kind (`emitted.Field`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import KeptBlocks
from livepro.engines.stream.filtering import PAGE_SHIFT
from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Field
from livepro.isa.kinds import parse
from livepro.model.arrays import ranges

Array = npt.NDArray[Any]

_INT32_MAX = (1 << 31) - 1


class Origin(NamedTuple):
    """Where things are: the module's first byte, its cache, the data window."""

    module: int
    cache: int
    data: int


@dataclass(frozen=True)
class PersistedModule:
    """All fragments of one module, as arrays. Addresses in the cache are offsets from its start, addresses of
    the program's are offsets from the module's first byte (int64). A row is a fragment; they ascend."""

    hot: Array
    """One number: how many bytes of `image` are the cache's first part."""
    image: Array
    """The bytes (uint8) of the cache's two parts behind each other."""

    out_fields: Array
    """Positions in `image` (int64) of the fields of kind `Field.OUT`; so the next nine, for other kinds."""
    cell_fields: Array
    slot_fields: Array
    data_fields: Array
    address_fields: Array
    negated_fields: Array
    fixed_fields: Array
    inside_fields: Array
    record_fields: Array
    page_fields: Array

    ranks: Array
    """By row: which of the module's slots is its own, counted from 0 (`order_by_heat`)."""
    counted: Array
    """By row: which slot is its block's: another one for replicas of loops (`unrolled`)."""
    pcs: Array
    """By row: the block's address."""
    starts: Array
    """By row: where the fragment begins."""
    colds: Array
    """By row: where its slow path is (or nothing)."""
    sizes: Array
    """By row: the fragment's bytes."""
    lengths: Array
    """By row: the block's instructions."""
    code_sizes: Array
    """By row: the block's bytes."""
    live: Array
    """By row: the flags that are live at its end."""
    steps: Array
    """The sizes of all instructions of all blocks (uint8)."""
    code: Array
    """The bytes of all blocks (uint8)."""
    kinds: Array
    """The kinds of all instructions (uint16): rows of `kind_facts`."""
    kind_facts: Array
    """The kinds (uint8), as `isa.kinds.dump` writes them."""

    link_fields: Array
    """Displacements that lead, or wait to be led, to `link_targets`."""
    link_targets: Array
    """The addresses wanted, ascending."""
    stubs: Array
    """Stops for `stub_targets`."""
    stub_targets: Array
    """The addresses wanted there."""

    landing_pcs: Array
    """Targets of indirect branches, in the order in which a lookup should meet them."""
    landings: Array
    """Where the lookup table leads to for each."""
    landing_exits: Array
    """The displacement over which each goes on."""
    landing_likely: Array
    """Whether each has been branched to."""
    tables: Array
    """The addresses of the jump tables that blocks branch by."""
    origin: Array
    """An `Origin`: where all this was."""

    record_pcs: Array
    """The blocks that the record fields name, by their numbers: the first of the parts of `KeptBlocks`, whose
    names follow (all are empty where nothing is recorded)."""
    record_lengths: Array
    record_steps: Array
    record_code: Array
    record_words: Array
    record_flows: Array
    record_targets: Array
    record_accesses: Array
    record_patterns: Array
    record_sizes: Array
    record_kinds: Array
    record_lanes: Array

    def __len__(self) -> int:
        return len(self.pcs)

    @property
    def recorded(self) -> KeptBlocks:
        """The blocks of the event stream that it names."""
        return KeptBlocks(*(getattr(self, f"record_{part}") for part in KeptBlocks._fields))

    def placed(self, there: Origin, first_cell: int, numbers: Array | None) -> tuple[Array, Array] | None:
        """The image's two parts (uint8) for another place, its first block counting in `first_cell`; the
        blocks that it records have these `numbers` there (None: it records nothing). None where it cannot be:
        a displacement would not reach."""
        module, cache, data = (int(value) for value in self.origin)
        moved = there.module - module
        if moved and (len(self.fixed_fields) or len(self.inside_fields)):
            return None
        image = self.image.copy()
        out = _gather(image, self.out_fields, np.int32).astype(np.int64) + (moved - (there.cache - cache))
        if len(out) and max(int(out.max()), -int(out.min())) > _INT32_MAX:
            return None
        _scatter(image, self.out_fields, out.astype(np.int32))
        _add(image, self.cell_fields, np.int32, first_cell * 8)
        _add(image, self.slot_fields, np.int32, first_cell)
        _add(image, self.data_fields, np.int32, there.data - data)
        _add(image, self.inside_fields, np.int32, there.cache - cache)
        _add(image, self.address_fields, np.int64, moved)
        _add(image, self.negated_fields, np.int64, -moved)
        _add(image, self.page_fields, np.uint32, moved >> PAGE_SHIFT & 0xFFFFFFFF)
        if numbers is not None:
            number(image, self.record_fields, numbers)
        hot = int(self.hot[0])
        return image[:hot], image[hot:]

    @cached_property
    def row_of(self) -> Array:
        """The row of the block that has each rank (int64)."""
        return np.argsort(self.ranks)

    @cached_property
    def _code_at(self) -> Array:
        return np.cumsum(self.code_sizes, dtype=np.int64) - self.code_sizes

    @cached_property
    def _steps_at(self) -> Array:
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    def source(self, row: int) -> tuple[int, bytes, bytes]:
        """A block's address, bytes, and the sizes of its instructions."""
        at, step = int(self._code_at[row]), int(self._steps_at[row])
        code = self.code[at : at + int(self.code_sizes[row])].tobytes()
        return int(self.pcs[row]), code, self.steps[step : step + int(self.lengths[row])].tobytes()

    @cached_property
    def instructions(self) -> list[Any]:
        """An instruction of each kind, to be had from `isa.kinds.restore`."""
        return parse(self.kind_facts.tobytes())

    @cached_property
    def _pieces(self) -> dict[bytes, bytes]:
        """Each piece of code, and each sequence of sizes, that was asked for: many processes keep them."""
        return {}

    def rows(self, rows: Array) -> tuple[list[int], list[bytes], list[bytes], Array]:
        """Addresses, bytes and instruction sizes of some blocks, and the kinds of all their instructions."""
        codes = _pieces(_ranges(self.code, self._code_at[rows], self.code_sizes[rows]), self.code_sizes[rows])
        lengths = self.lengths[rows]
        steps = _pieces(_ranges(self.steps, self._steps_at[rows], lengths), lengths)
        kinds = _ranges(self.kinds, self._steps_at[rows], lengths)
        same = self._pieces.setdefault
        codes, steps = [same(piece, piece) for piece in codes], [same(piece, piece) for piece in steps]
        return self.pcs[rows].tolist(), codes, steps, np.frombuffer(kinds, np.uint16)

    def outside(self, size: int) -> Array:
        """Which of the links (indices) lead out of a module of so many bytes: to another segment of its file,
        as a rule. (Where they lead to is as far from the module wherever it is: branches are relative.)"""
        return np.flatnonzero((self.link_targets < 0) | (self.link_targets >= size))

    def overlapping(self, start: int, end: int) -> list[int]:
        """The addresses of the blocks that overlap [start, end)."""
        pcs = self.pcs.astype(np.int64)
        found: list[int] = pcs[(pcs < end) & (start < pcs + self.code_sizes)].tolist()
        return found

    def arrays(self) -> dict[str, Array]:
        """Its parts by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _ranges(values: Array, at: Array, lengths: Array) -> bytes:
    """The bytes of `lengths[i]` values from `at[i]` on, for all i one after the other."""
    found: bytes = values[ranges(at, lengths)].tobytes()
    return found


def _pieces(data: bytes, sizes: Array) -> list[bytes]:
    """`data` cut into pieces of the given sizes."""
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _fields_of(image: Array, kind: Any) -> Array:
    """The field of a kind at each position of an image: they overlap, and are not aligned."""
    return np.ndarray((max(0, len(image) - np.dtype(kind).itemsize + 1),), kind, image, strides=(1,))


def _gather(image: Array, positions: Array, kind: Any) -> Array:
    values: Array = _fields_of(image, kind)[positions]
    return values


def _scatter(image: Array, positions: Array, values: Array) -> None:
    _fields_of(image, values.dtype)[positions] = values


def _add(image: Array, positions: Array, kind: Any, amount: int) -> None:
    if amount and len(positions):
        _fields_of(image, kind)[positions] += np.array(amount, kind)


def slots_of(image: Array, cells: Array) -> Array:
    """The slots that counters at `cells` of an image count in (int64)."""
    return (_gather(image, cells, np.int32).astype(np.int64) - layout.COUNTERS) // 8


def order_by_heat(executions: Array) -> Array:
    """Ranks (int32) for blocks that have been executed so often, in whose order their counters lie in
    memory: those of blocks executed about as often together, and among them neighbours, so that the
    counters of a program's hot blocks share few cache lines."""
    heat = np.frexp(executions.astype(np.float64))[1] // 2  # powers of four
    ranks = np.empty(len(heat), np.int32)
    ranks[np.argsort(-heat, kind="stable")] = np.arange(len(heat), dtype=np.int32)
    return ranks


def renumber(image: Array, cells: Array, slots: Array, ranks: Array) -> None:
    """Let an image count in ranks of a persisted: `ranks[slot]` instead of each slot."""
    found = ranks[slots_of(image, cells)]
    _scatter(image, cells, (found * 8 + layout.COUNTERS).astype(np.int32))
    named = ranks[_gather(image, slots, np.int32)]
    _scatter(image, slots, named.astype(np.int32))


def numbers_of(image: Array, records: Array) -> Array:
    """The numbers of the blocks that an image records, field by field (int64)."""
    return _gather(image, records, np.int32).astype(np.int64)


def number(image: Array, records: Array, numbers: Array) -> None:
    """Let an image record `numbers[n]` instead of each block n."""
    _scatter(image, records, numbers[numbers_of(image, records)].astype(np.int32))


FIELD_ARRAYS = {
    Field.OUT: "out_fields",
    Field.CELL: "cell_fields",
    Field.SLOT: "slot_fields",
    Field.DATA: "data_fields",
    Field.ADDRESS: "address_fields",
    Field.NEGATED: "negated_fields",
    Field.FIXED: "fixed_fields",
    Field.INSIDE: "inside_fields",
    Field.RECORD: "record_fields",
    Field.PAGE: "page_fields",
}
