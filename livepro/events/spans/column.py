"""Arrays that grow at their ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def grown(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """An array of at least `length` rows; zeros behind those there were."""
    if len(array) >= length:
        return array
    out = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


class Column:
    """An array that grows at its end: `data` has `length` entries in use, the first ones `values`, and zeros
    behind them."""

    def __init__(self, kind: Any, *values: int) -> None:
        self.data: npt.NDArray[Any] = np.zeros(1024, kind)
        self.length = 0
        self.add(values)

    def add(self, values: Any) -> None:
        """Add entries behind those in use. Who still has `data` of before sees what it had."""
        end = self.length + len(values)
        self.data = grown(self.data, end)
        self.data[self.length : end] = values
        self.length = end
