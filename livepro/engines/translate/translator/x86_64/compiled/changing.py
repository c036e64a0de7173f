"""Code that may change: as it was read last, and what blocks were made from."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.translator.compiling.tables import READ, REFUSED, WINDOW_SHIFT
from livepro.engines.translate.translator.x86_64.compiled.module import Text
from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable
from livepro.model.arrays import ranges

_PAGE = 1 << WINDOW_SHIFT
_AT_ONCE = 4
"""Pages that are read at once: what follows is often next to it."""
_BEHIND = 16
"""Bytes behind the last block, which may be looked at as if they were an instruction's."""
Array = npt.NDArray[np.int64]


class ChangingText(Text):
    """The code of a range of addresses, read anew each time."""

    def __init__(self, start: int, size: int, shapes: ShapeTable) -> None:
        super().__init__(start, size, shapes)
        self._read: list[slice] = []

    def forget(self) -> None:
        """Have all read anew that is wanted from now on."""
        for pages in self._read:
            self.present[pages] = 0
        self._read.clear()

    def fill(self, at: int, read: Callable[[int, int], bytes]) -> None:
        """See `ChangingText`."""
        first = at >> WINDOW_SHIFT
        begin, size = first << WINDOW_SHIFT, min(_AT_ONCE * _PAGE, len(self.code) - (first << WINDOW_SHIFT))
        data = read(self.start + begin, size)
        self.code[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        there = len(data) >> WINDOW_SHIFT
        pages = slice(first, first + max(there, 1))
        self.present[pages] = READ if there else REFUSED
        self._read.append(pages)


class CodeOfBlocks(Text):
    """The bytes that blocks were made from, one after the other."""

    def __init__(self, shapes: ShapeTable) -> None:
        super().__init__(0, _PAGE, shapes)
        self._end = 0

    def add(self, text: Text, offsets: Array, sizes: Array) -> Array:
        """Take the bytes of blocks at these offsets of `text`. Returns the index of each (int64)."""
        total = int(sizes.sum())
        end = self._end + total
        if end + _BEHIND > len(self.code):
            code = np.zeros(2 * (end + _BEHIND), np.uint8)
            code[: self._end] = self.code[: self._end]
            self.code = code
        self.code[self._end : end] = text.code[ranges(offsets, sizes)]
        places = np.cumsum(sizes) - sizes + self._end
        self._end = end
        return places
