"""One of all values that are equal: programs that are started again and again execute the same code, equally
often, and what is kept of each should take no memory a thousand times."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Value = TypeVar("_Value")
_Number = TypeVar("_Number", bound=np.generic)


class Alike:
    """Each method returns the first value that was equal to its argument. Nothing may be changed in
    either after that."""

    def __init__(self) -> None:
        self._first: dict[Hashable, Any] = {}

    def of_list(self, values: list[_Value]) -> list[_Value]:
        """For a list of what can be hashed."""
        first: list[_Value] = self._first.setdefault(tuple(values), values)
        return first

    def of_machine_values(self, values: array[int]) -> array[int]:
        """For an array of the standard library's."""
        first: array[int] = self._first.setdefault((values.typecode, values.tobytes()), values)
        return first

    def of_array(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """For an array of one dimension; what is returned is read-only."""
        key = values.dtype.str, values.tobytes()
        first: npt.NDArray[_Number] | None = self._first.get(key)
        if first is None:
            first = self._first[key] = values.copy()
            first.flags.writeable = False
        return first
