"""What numba compiles for either instruction set. It is imported to be compiled (`entries`): runs have the
machine code."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from numba import njit

kernel = njit(nogil=True, _nrt=False)
"""Compiles a function that allocates nothing: without numba's runtime no references to arrays are counted,
which took a tenth of the time."""

within = njit(nogil=True, _nrt=False, inline="always")
"""Compiles a function into the one place where it is called: to hand on thirty arrays took a third of the
time."""


def alike(*functions: Callable[..., Any]) -> Any:
    """The last of some plain functions, compiled: each may call those before it."""
    known: dict[str, Any] = {}
    for each in functions:
        same = FunctionType(each.__code__, {**each.__globals__, **known}, each.__name__, each.__defaults__)
        known[each.__name__] = kernel(same)
    return known[functions[-1].__name__]
