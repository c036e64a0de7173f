"""What numba compiles. It is imported to be compiled (`entries`): runs have the machine code."""

# mypy: ignore-errors

from __future__ import annotations

from numba import njit

kernel = njit(nogil=True, _nrt=False)
"""Compiles a function that allocates nothing: without numba's runtime no references to arrays are counted,
which took a tenth of the time."""

within = njit(nogil=True, _nrt=False, inline="always")
"""Compiles a function into the one place where it is called: to hand on thirty arrays took a third of the
time."""
