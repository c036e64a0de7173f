"""Addresses of one code in several images: where its modules are mapped differs, all else is the same."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.unsignedinteger[Any]]

_WORTH = 16
"""Addresses for each module, below which the distances take more than they spare."""


class Shifted(Sequence[int]):
    """Addresses of blocks, by row: `offsets` in their modules (uint64), and the distance of
    each module, of which `which` says the number. `offsets` and `which` can belong to many images.
    """

    __slots__ = ("distances", "offsets", "which")

    def __init__(self, offsets: array[int], which: Numbers, distances: npt.NDArray[np.uint64]) -> None:
        self.offsets = offsets
        self.which = which
        self.distances = distances

    @classmethod
    def of(
        cls, addresses: array[int], offsets: array[int], shared: Callable[[Numbers], Numbers]
    ) -> Shifted | array[int]:
        """The addresses so, or themselves where that takes no less memory. `shared` gives the one of all
        arrays that are equal."""
        away = np.array(addresses, np.uint64) - np.array(offsets, np.uint64)
        distances, first, which = np.unique(away, return_index=True, return_inverse=True)
        if _WORTH * len(distances) > len(addresses):
            return addresses
        # Numbered as they are met: how they are ordered in memory is another each time.
        met = np.argsort(first)
        number = np.empty(len(met), np.min_scalar_type(len(met)))
        number[met] = np.arange(len(met))
        return cls(offsets, shared(number[which]), distances[met])

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return self.__array__()[row].tolist()
        return (self.offsets[row] + int(self.distances[self.which[row]])) % (1 << 64)

    def __iter__(self) -> Iterator[int]:
        return iter(self.__array__().tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All as an array of their own (uint64, B)."""
        out: npt.NDArray[Any] = np.array(self.offsets, np.uint64) + self.distances[self.which]
        return out if dtype is None else out.astype(dtype, copy=False)
