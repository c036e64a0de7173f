"""One module's code translated by the kernels: the arrays they work on, and what they need to know."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import KeptBlocks
from livepro.engines.stream.filtering import Filter
from livepro.engines.translate.codecache.compiled_code import Instructions, LookupTable, Made
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    FINE,
    MOST,
    READ,
    REFUSED,
    ROOM_COMPARED,
    ROOM_FILTERED,
    ROOM_PLAIN,
    ROOM_RECORDED,
    WINDOW_SHIFT,
)
from livepro.isa.kinds import Kinds
from livepro.isa.x86_64.describe import describe
from livepro.model import Instruction
from livepro.model.arrays import ranges

Array = npt.NDArray[np.int64]

_WINDOW = 1 << 16  # bytes of code that are read at once
_NEW = 8192  # entries and links that there is room for, at least
_ROWS, _FIELDS, _STUBS, _LANDINGS, _STACK, _NEEDS = 4096, 1 << 15, 8192, 2048, 4096, 512


class Text:
    """A module's code, as far as it has been read: `code` (uint8) and which pages are `present` (uint8).
    `read` reads the program's memory."""

    def __init__(self, start: int, size: int, shapes: ShapeTable) -> None:
        self.start = start
        self.shapes = shapes
        self.code = np.zeros(size, np.uint8)
        self.present = np.zeros((size >> WINDOW_SHIFT) + 1, np.uint8)

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

    def fill(self, at: int, read: Callable[[int, int], bytes]) -> None:
        """Read the window that an index is in."""
        begin = at & -_WINDOW
        size = min(_WINDOW, len(self.code) - begin)
        data = read(self.start + begin, size)
        self.code[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        first, pages = begin >> WINDOW_SHIFT, size + (1 << WINDOW_SHIFT) - 1 >> WINDOW_SHIFT
        self.present[first : first + pages] = REFUSED
        self.present[first : first + (pages if len(data) == size else len(data) >> WINDOW_SHIFT)] = READ


class CompiledModule:
    """Translates one module's code. `image` is the cache's memory, which begins at address `base`; `low` says
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
        self._text = text
        self._image = image
        self._words, self._long_words = image.view(np.int32), image.view(np.uint64)
        self._shapes = text.shapes
        self._kernels = text.shapes.native.kernels()
        self._pieces = pieces
        self._bounds = bounds
        self._state = np.zeros(tables.STATE_SIZE, np.int64)
        self._state[tables.BASE], self._state[tables.MODULE] = base, text.start
        self._state[tables.SIZE], self._state[tables.LOW] = len(text.code), low
        self._state[tables.RECORDS], self._state[tables.ASKS] = records, asks
        self._state[tables.ADDRESSES], self._state[tables.CHARGES] = addresses, charges
        self._state[tables.CHECKS] = checks
        self._state[tables.ROOM] = ROOM_RECORDED if records else ROOM_PLAIN
        if filter is not None:
            self._state[tables.FILTERS], self._state[tables.ROOM] = True, ROOM_FILTERED
            self._state[tables.DATA_LINE : tables.LATEST] = (
                *(filter.data.line, filter.data.mask),
                *(filter.code.line, filter.code.mask),
            )
        self._state[tables.ROOM] += ROOM_COMPARED if checks else 0
        text.shapes.records |= records or filter is not None
        self._places = np.zeros((tables.MOST_WORDS + MOST + 32, tables.PLACE_COLUMNS), np.int64)
        self._moved = np.zeros(16, np.int64)
        self._keys = np.zeros(1 << 12, np.int64)
        self._index = np.zeros((1 << 12, tables.INDEX_COLUMNS), np.int32)
        self._links = np.zeros((1 << 12, 3), np.int64)
        self._rows = np.zeros((_ROWS, tables.ROW_COLUMNS), np.int64)
        self._fields = np.zeros((_FIELDS, 2), np.int64)
        self._stubs = np.zeros((_STUBS, 2), np.int64)
        self._landings = np.zeros((_LANDINGS, 3), np.int64)
        self._elsewhere = np.zeros((_LANDINGS, 2), np.int64)
        self._first_link = 0
        self._stands_by: tuple[Any, ...] | None = None
        self._at = 0
        self._patches = np.zeros((1 << 12, 2), np.int64)
        self._needs = np.zeros(_NEEDS, np.int64)
        self._returns, self._successors = np.zeros(_STACK, np.int64), np.zeros(_STACK, np.int64)
        self._left, self._again = np.zeros(_STACK, np.int64), np.zeros((_STACK, 2), np.int64)
        self._offsets, self._of_shape = np.zeros(MOST + 32, np.int64), np.zeros(MOST + 32, np.int64)

    def take(
        self,
        pcs: Array,
        fragments: Array,
        fields: Array,
        targets: Array,
        stub_targets: Array,
        stubs: Array,
        landed: Array,
    ) -> None:
        """Know of what was made elsewhere (see `index.take`)."""
        state = self._state
        self._make_room(len(pcs) + len(targets) + len(stubs) + len(landed), len(fields))
        self._kernels.take(
            *(state, self._keys, self._index, self._links, pcs, fragments, fields, targets, stub_targets),
            *(stubs, landed, state[tables.SIZE]),
        )

    def links_to(self, offset: int) -> list[int]:
        """The fields of all branches that are to lead to an offset in the module."""
        self._make_room(1, 0)
        found: list[int] = []
        follow = self._kernels.links_to(self._state, self._keys, self._index, offset)
        while follow:
            field, _, follow = self._links[follow - 1].tolist()
            found.append(field)
        return found

    def forget(self, offset: int, *, gone: bool) -> None:
        """See `CompiledCode`."""
        self._make_room(1, 0)
        self._kernels.forget(self._state, self._keys, self._index, offset, int(gone))

    def _make_room(self, entries: int, links: int) -> None:
        state = self._state
        self._stands_by = None
        size = len(self._keys)
        while 2 * (int(state[tables.ENTRIES]) + entries + 256) >= size:
            size *= 2
        if size > len(self._keys):
            keys, index = np.zeros(size, np.int64), np.zeros((size, tables.INDEX_COLUMNS), np.int32)
            self._kernels.rehash(state, self._keys, self._index, keys, index)
            self._keys, self._index = keys, index
        if state[tables.LINKS] + links + 256 >= len(self._links):
            more = np.zeros((2 * (len(self._links) + links + 256), 3), np.int64)
            more[: len(self._links)] = self._links
            self._links = more
        if len(self._patches) < len(self._links):
            # Each link leads to one fragment, and is patched once when that is made.
            patches = np.zeros((len(self._links), 2), np.int64)
            patches[: len(self._patches)] = self._patches
            self._patches = patches

    def begin(self, eager: int, returns: Sequence[int] = (), successors: Sequence[int] = ()) -> None:
        """See `CompiledCode`."""
        state = self._state
        state[tables.BUDGET] = eager
        for which, stack, likely in (
            (tables.RETURNS, self._returns, returns),
            (tables.SUCCESSORS, self._successors, successors),
        ):
            likely = likely[-len(stack) :]
            stack[: len(likely)] = likely
            state[which] = len(likely)

    def run(
        self, pc: int, cell: int, room: tuple[int, int, int, int], *, lands: bool, likely: bool
    ) -> Made | None:
        """See `CompiledCode`."""
        state = self._state
        self._begin(cell, room)
        status = self._kernels.translate(state, self._image, pc, lands, likely, *self._arrays())
        return self._made() if status == FINE else None

    def _begin(self, cell: int, room: tuple[int, int, int, int]) -> None:
        """Have nothing made yet."""
        state = self._state
        self._stands_by = None
        self._make_room(_NEW, _NEW)
        state[: tables.HOT + 4] = room
        state[tables.CELL] = cell
        state[tables.ROWS : tables.RETURNS] = 0
        state[tables.NEEDS] = state[tables.BYTES] = 0
        state[tables.ENTERED] = state[tables.ELSEWHERE] = 0
        self._first_link = int(state[tables.LINKS])

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

    def made(self) -> Made:
        """See `CompiledCode`."""
        self._stands_by = None
        return self._made()

    @property
    def latest(self) -> tuple[Array, Array]:
        """See `CompiledCode`."""
        return self._rows[: self._state[tables.ROWS]], self._stubs[: self._state[tables.STUBS]]

    def prepare(self, read: Callable[[int, int], bytes]) -> bool:
        """Read and learn what the last call was in need of; False if that was nothing."""
        state, text = self._state, self._text
        needs = self._needs[: state[tables.NEEDS]].tolist()
        for need in needs:
            if need < 0:
                text.fill(-1 - need, read)
            else:
                self._shapes.learn(text.code, need)
        for at, lands in self._again[: state[tables.AGAIN]].tolist():
            which, stack = (tables.RETURNS, self._returns) if lands else (tables.SUCCESSORS, self._successors)
            if state[which] < len(stack):
                stack[state[which]] = at
                state[which] += 1
                state[tables.BUDGET] += 1
        state[tables.AGAIN] = 0
        return bool(needs)

    def _made(self) -> Made:
        state, first_link = self._state, self._first_link

        def some(array, which):
            return array[: state[which]].copy()

        return Made(
            some(self._rows, tables.ROWS),
            some(self._fields, tables.FIELDS),
            self._links[first_link : state[tables.LINKS], :2].copy(),
            some(self._stubs, tables.STUBS),
            some(self._landings, tables.LANDINGS),
            some(self._left, tables.LEFT),
            int(state[tables.BYTES]),
        )

    @property
    def ends(self) -> tuple[int, int]:
        """The offsets of the cache's free places."""
        return int(self._state[tables.HOT]), int(self._state[tables.COLD])

    def land(self, lookup: LookupTable) -> list[list[int]]:
        """See `CompiledCode`."""
        found = self._kernels.enter(
            *(self._state, self._image, self._long_words, lookup.table, lookup.tails, lookup.miss),
            *(self._landings, int(self._state[tables.LANDINGS]), lookup.otherwise, self._elsewhere),
        )
        return self._elsewhere[:found].tolist()

    def publish(self) -> None:
        """Let the branches that wait for what the last call has made lead there."""
        self._kernels.publish(self._words, self._patches, self._state[tables.PATCHES])
