"""One module's code translated by the kernels: the arrays they work on, and what they need to know."""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import KeptBlocks
from livepro.engines.stream.filtering import Filter
from livepro.engines.translate.codecache.compiled_code import Instructions, LookupTable
from livepro.engines.translate.translator.compiling.module import TranslatedModule
from livepro.engines.translate.translator.compiling.tables import LANDINGS, MOST, PATCHES
from livepro.engines.translate.translator.compiling.windows import Window
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ROOM_COMPARED,
    ROOM_FILTERED,
    ROOM_PLAIN,
    ROOM_RECORDED,
)
from livepro.isa.kinds import Kinds
from livepro.isa.x86_64.describe import describe
from livepro.model import Instruction
from livepro.model.arrays import ranges

Array = npt.NDArray[np.int64]


class Text(Window):
    """A module's code, as far as it has been read, of instructions that have `shapes`."""

    def __init__(self, start: int, size: int, shapes: ShapeTable) -> None:
        super().__init__(start, size)
        self.shapes = shapes

    def describe(self, code: bytes) -> Instruction:
        """See `CodeText`."""
        return describe(code)

    def instructions(self, at: Array, counts: Array, sizes: Array, kind_of: Kinds) -> Instructions:
        """See `CodeText`."""
        table = self.shapes
        steps, shapes, code = self._look_into(at, counts, sizes)
        numbers = np.zeros(len(table), np.uint16)  # by shape
        used = np.flatnonzero(np.bincount(shapes, minlength=1))
        groups, instructions = table.described(used)
        numbers[used] = np.array([kind_of.number(each) for each in instructions], np.uint16)[groups]
        return Instructions(steps, numbers[shapes], code)

    def steps_of(self, at: Array, counts: Array, sizes: Array) -> npt.NDArray[np.uint8]:
        """See `CodeText`."""
        return self._look_into(at, counts, sizes)[0]

    def _look_into(self, at: Array, counts: Array, sizes: Array) -> tuple[Any, Any, Any]:
        """Of the instructions of blocks at these offsets the sizes (uint8), shapes (int32) and bytes
        (uint8)."""
        table, total = self.shapes, int(counts.sum())
        found = np.zeros(total, np.uint8), np.zeros(total, np.int32), np.zeros(sizes.sum(), np.uint8)
        table.kernels.shapes_of(self.code, at, counts, table.lows, table.highs, table.rows, *found)
        return found

    def steps(self, at: int, count: int) -> bytes:
        """The sizes of so many instructions from an index on."""
        out = np.zeros(count, np.uint8)
        self.shapes.kernels.measure_all(self.code, at, out)
        return out.tobytes()

    def told(self, at: Array, counts: Array, sizes: Array, *, accessing: bool) -> KeptBlocks:
        """See `CodeText`."""
        total, table, blocks = int(counts.sum()), self.shapes, len(at)
        steps, flows, each = (np.zeros(total, np.uint8) for _ in range(3))
        most = total * tables.MOST_ACCESSES
        accessed, kinds = np.zeros(most, np.int32), np.zeros(most, np.uint8)
        words, to = np.zeros(blocks, np.int32), np.zeros(blocks, np.int64)
        found = table.kernels.tell(
            *(self.code, at, counts, table.lows, table.highs, table.rows, table.facts, table.recorded),
            *(steps, flows, each, accessed, kinds, words, to),
        )
        if not accessing:
            found, each[:], words[:] = 0, 0, 1
        return KeptBlocks(
            pcs=at,
            lengths=counts.astype(np.int32),
            steps=steps,
            code=self.code[ranges(at, sizes)],
            words=words,
            flows=flows,
            targets=to,
            accesses=each,
            patterns=np.zeros(found, np.uint8),
            sizes=accessed[:found],
            kinds=kinds[:found],
            lanes=np.zeros(found, np.uint8),
        )


class CompiledModule(TranslatedModule):
    """Translates one module's code (see `TranslatedModule`); `low` says
    that code may branch by jump tables, `records` that executions of blocks are recorded, with `addresses`
    or without, `filter` what of that is left out, `asks` that blocks are given allowances,
    `charges` that each execution takes a block's length from a budget, `checks` that the code may change."""

    def __init__(
        self,
        text: Text,
        base: int,
        image: npt.NDArray[np.uint8],
        pieces: npt.NDArray[np.uint8],
        bounds: Array,
        *,
        low: bool,
        records: bool,
        filter: Filter | None,
        asks: bool,
        charges: bool = False,
        addresses: bool = True,
        checks: bool = False,
    ) -> None:
        self._shapes = text.shapes
        room = ROOM_FILTERED if filter is not None else ROOM_RECORDED if records else ROOM_PLAIN
        room += ROOM_COMPARED if checks else 0
        super().__init__(text, base, image, text.shapes.native.kernels(), tables.STATE_SIZE, room)
        self._pieces = pieces
        self._bounds = bounds
        state = self._state
        state[tables.LOW], state[tables.RECORDS], state[tables.ASKS] = low, records, asks
        state[tables.ADDRESSES], state[tables.CHARGES], state[tables.CHECKS] = addresses, charges, checks
        if filter is not None:
            state[tables.FILTERS] = True
            state[tables.DATA_LINE : tables.LATEST] = (
                *(filter.data.line, filter.data.mask),
                *(filter.code.line, filter.code.mask),
            )
        text.shapes.records |= records or filter is not None
        self._places = np.zeros((tables.MOST_WORDS + MOST + 32, tables.PLACE_COLUMNS), np.int64)
        self._moved = np.zeros(16, np.int64)
        self._at = 0
        self._offsets, self._of_shape = np.zeros(MOST + 32, np.int64), np.zeros(MOST + 32, np.int64)

    def _arrays(self) -> tuple[Any, ...]:
        text, shapes = self._text, self._shapes
        return (
            *(text.code, text.present, shapes.lows, shapes.highs),
            *(shapes.rows, shapes.facts, shapes.recorded, self._places, self._moved),
            *(self._pieces, self._bounds, self._keys, self._index),
            *(self._links, self._rows, self._fields, self._stubs, self._landings, self._patches),
            *(self._needs, self._returns, self._successors, self._left, self._again, self._offsets),
            self._of_shape,
        )

    def _learn(self, at: int) -> None:
        self._shapes.learn(self._text.code, at)

    def stands_by(self, room: tuple[int, int, int, int]) -> int:
        """See `CompiledCode`."""
        shapes = self._shapes
        still = self._stands_by == (room, id(shapes.lows), id(shapes.facts), id(shapes.recorded))
        return self._at if still else 0

    def stand_by(
        self,
        room: tuple[int, int, int, int],
        eager: int,
        lookup: LookupTable,
        told: npt.NDArray[np.int32],
        log: Array,
    ) -> int:
        """See `CompiledCode`."""
        shapes = self._shapes
        self._begin(0, room)
        self._at = self._kernels.arrive.give(
            *(0, 0, 0, 0, eager, lookup.miss, lookup.otherwise),
            *(self._state, self._image, self._words, self._long_words, lookup.table, lookup.tails),
            *(self._elsewhere, told, log, *self._arrays()),
        )
        self._stands_by = room, id(shapes.lows), id(shapes.facts), id(shapes.recorded)
        return self._at

    def land(self, lookup: LookupTable) -> list[list[int]]:
        """See `CompiledCode`."""
        found = self._kernels.enter(
            *(self._state, self._image, self._long_words, lookup.table, lookup.tails, lookup.miss),
            *(self._landings, int(self._state[LANDINGS]), lookup.otherwise, self._elsewhere),
        )
        return self._elsewhere[:found].tolist()

    def publish(self) -> None:
        """Let the branches that wait for what the last call has made lead there."""
        self._kernels.publish(self._words, self._patches, self._state[PATCHES])
