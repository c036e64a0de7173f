"""How many bytes DC ZVA clears: the processor says."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Final

from livepro.isa.machine_code import call

_READ_DCZID: Final = (0xD53B00E0, 0xD65F03C0)
"""mrs x0, dczid_el0; ret"""


@cache
def block_size() -> int:
    """Bytes of the block (Arm ARM, D19.2.37: DCZID_EL0, the logarithm of its words); 64, as on nearly all
    processors, where this is none to ask."""
    if platform.machine() != "aarch64":
        return 64
    told = call(b"".join(word.to_bytes(4, "little") for word in _READ_DCZID), ctypes.c_uint64)
    return 4 << (int(told) & 15)
