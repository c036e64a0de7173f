"""One module's code translated by kernels: the arrays that they work on, whatever the instruction set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.codecache.compiled_code import Made
from livepro.engines.translate.translator.compiling import tables
from livepro.engines.translate.translator.compiling.windows import Window

Array = npt.NDArray[np.int64]

_NEW = 8192  # entries and links that there is room for, at least
_ROWS, _FIELDS, _STUBS, _LANDINGS, _STACK, _NEEDS = 4096, 1 << 15, 8192, 2048, 4096, 512


class TranslatedModule(ABC):
    """Translates one module's code. `image` is the cache's memory, which begins at address `base`; `kernels`
    are those of the instruction set, by name; `state` has so many numbers; a chain takes `room` bytes, at
    most."""

    def __init__(
        self, text: Window, base: int, image: npt.NDArray[np.uint8], kernels: Any, state: int, room: int
    ) -> None:
        self._text = text
        self._image = image
        self._words, self._long_words = image.view(np.int32), image.view(np.uint64)
        self._kernels = kernels
        self._state = np.zeros(state, np.int64)
        self._state[tables.BASE], self._state[tables.MODULE] = base, text.start
        self._state[tables.SIZE], self._state[tables.ROOM] = len(text.code), room
        self._keys = np.zeros(1 << 12, np.int64)
        self._index = np.zeros((1 << 12, tables.INDEX_COLUMNS), np.int32)
        self._links = np.zeros((1 << 12, 3), np.int64)
        self._rows = np.zeros((_ROWS, tables.ROW_COLUMNS), np.int64)
        self._fields = np.zeros((_FIELDS, 2), np.int64)
        self._stubs = np.zeros((_STUBS, 2), np.int64)
        self._landings = np.zeros((_LANDINGS, 3), np.int64)
        self._elsewhere = np.zeros((_LANDINGS, 2), np.int64)
        self._first_link = 0
        self._stands_by: tuple[Any, ...] | None = None  # what it has been given to answer stops with
        self._patches = np.zeros((1 << 12, 2), np.int64)
        self._needs = np.zeros(_NEEDS, np.int64)
        self._returns, self._successors = np.zeros(_STACK, np.int64), np.zeros(_STACK, np.int64)
        self._left, self._again = np.zeros(_STACK, np.int64), np.zeros((_STACK, 2), np.int64)

    @abstractmethod
    def _arrays(self) -> tuple[Any, ...]:
        """What the kernel `translate` is given behind its first five arguments."""

    @abstractmethod
    def _learn(self, at: int) -> None:
        """Learn what the instruction at an offset means."""

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
        return self._made() if status == tables.FINE else None

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
                self._learn(need)
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

        def some(array: Array, which: int) -> Array:
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
