"""What NumPy has not, or not without loading much for it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Integer = TypeVar("_Integer", bound=np.integer[Any])


def distinct(values: npt.NDArray[_Integer]) -> npt.NDArray[_Integer]:
    """The distinct values of an array of integers, sorted: np.unique without numpy.ma, the loading of
    which it asks for."""
    ordered = np.sort(values)
    found: npt.NDArray[_Integer] = ordered[np.diff(ordered, prepend=~ordered[:1]) != 0]
    return found
