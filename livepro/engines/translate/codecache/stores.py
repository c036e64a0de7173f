"""Writing where threads run: each must see all of what is written, or nothing.

`struct.pack_into` will not do: it sets the bytes to 0 before it writes them (CPython's
`Modules/_struct.c`). An assignment to a `ctypes` integer is one store.
"""

from __future__ import annotations

import ctypes
from typing import Any

_u32 = ctypes.c_uint32.from_buffer
_u64 = ctypes.c_uint64.from_buffer


def store_32(buffer: Any, at: int, value: int) -> None:
    """Write 32 bits at index `at`: aligned, or at least within an aligned word of 64 bits."""
    _u32(buffer, at).value = value


def store_64(buffer: Any, at: int, value: int) -> None:
    """Write 64 bits at index `at`, aligned."""
    _u64(buffer, at).value = value
