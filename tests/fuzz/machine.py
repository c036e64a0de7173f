"""What not every machine does."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from functools import cache

_INT1 = """
import ctypes, mmap, signal
signal.signal(signal.SIGTRAP, lambda *_: None)
code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes((0xF1, 0xC3)))  # int1; ret
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""


@cache
def completes_int1() -> bool:
    """Whether int1 completes here. On some virtual machines (AMD's processors under KVM) its trap names
    the instruction itself, and a handler that returns executes it again and again."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run([sys.executable, "-c", _INT1], timeout=3).returncode == 0
    return False
