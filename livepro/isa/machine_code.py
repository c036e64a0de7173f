"""Machine code as a Python function: what only an instruction of this processor tells."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any


def call(code: bytes, result: Any, *arguments: tuple[Any, Any]) -> Any:
    """What a function of the processor's own calling convention returns. `result` is its type (of ctypes),
    `arguments` are types and values."""
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    function: Callable[..., Any] = ctypes.CFUNCTYPE(result, *(kind for kind, _ in arguments))(at)
    return function(*(value for _, value in arguments))
