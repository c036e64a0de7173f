"""A module's code, as far as it has been read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from livepro.engines.translate.translator.compiling.tables import READ, REFUSED, WINDOW_SHIFT

_WINDOW = 1 << 16  # bytes of code that are read at once


class Window:
    """`code` (uint8) from address `start` on, and which pages of it are `present` (uint8)."""

    def __init__(self, start: int, size: int) -> None:
        self.start = start
        self.code = np.zeros(size, np.uint8)
        self.present = np.zeros((size >> WINDOW_SHIFT) + 1, np.uint8)

    def fill(self, at: int, read: Callable[[int, int], bytes]) -> None:
        """Read the window that an index is in."""
        begin = at & -_WINDOW
        size = min(_WINDOW, len(self.code) - begin)
        data = read(self.start + begin, size)
        self.code[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
        first, pages = begin >> WINDOW_SHIFT, size + (1 << WINDOW_SHIFT) - 1 >> WINDOW_SHIFT
        self.present[first : first + pages] = REFUSED
        self.present[first : first + (pages if len(data) == size else len(data) >> WINDOW_SHIFT)] = READ
