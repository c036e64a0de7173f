"""Makes code that livepro has written visible to instruction fetch.

AArch64 does not keep instruction caches coherent with stores (Arm ARM B2.7.4.2,
"Synchronization and coherency issues between data and instruction accesses").
The lines written are cleaned to the point of unification and invalidated in
the instruction caches of the inner shareable domain, which other processors
see too. This is done by the address of livepro's own mapping of the code, which
the architecture allows where instruction caches are indexed physically (or
as if they were); elsewhere the engine refuses (`check_processor`). A
thread that has been stopped and goes on has synchronised its context
by returning from the kernel. Another thread only comes to new code over a
branch that is replaced by another (`encode.link`), or through a table.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from livepro.engines.translate.translator.aarch64.encode import pack
from livepro.errors import LiveproError

# x0: from, x1: to (both addresses). CTR_EL0 has log2 of the words in a line.
_ROUTINE = (
    0xD53B0023,  # mrs x3, ctr_el0
    0xD3504C64,  # ubfx x4, x3, #16, #4
    0xD2800085,  # mov x5, #4
    0x9AC420A4,  # lsl x4, x5, x4: bytes in a line of data
    0x92400C63,  # and x3, x3, #15
    0x9AC320A3,  # lsl x3, x5, x3: bytes in a line of instructions
    0xD1000485,  # sub x5, x4, #1
    0x8A250005,  # bic x5, x0, x5
    0xD50B7B25,  # 1: dc cvau, x5
    0x8B0400A5,  # add x5, x5, x4
    0xEB0100BF,  # cmp x5, x1
    0x54FFFFA3,  # b.lo 1b
    0xD5033B9F,  # dsb ish
    0xD1000465,  # sub x5, x3, #1
    0x8A250005,  # bic x5, x0, x5
    0xD50B7525,  # 2: ic ivau, x5
    0x8B0300A5,  # add x5, x5, x3
    0xEB0100BF,  # cmp x5, x1
    0x54FFFFA3,  # b.lo 2b
    0xD5033B9F,  # dsb ish
    0xD5033FDF,  # isb
    0xD65F03C0,  # ret
)


_READ_TYPE = (0xD53B0020, 0xD65F03C0)  # mrs x0, ctr_el0; ret

_VIPT, _DIC = 2 << 14, 1 << 29  # CTR_EL0: L1Ip; no invalidation needed (D19.2.34)


class _Routine:
    """Machine code of livepro's own, as a function. (The kernel makes a page coherent that is
    first mapped executable.)"""

    def __init__(self, words: Sequence[int], *arguments: Any) -> None:
        descriptor = os.memfd_create("livepro", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, pack(words).ljust(mmap.PAGESIZE, b"\0"))
            protection = mmap.PROT_READ | mmap.PROT_EXEC
            self._mapped = mmap.mmap(descriptor, mmap.PAGESIZE, mmap.MAP_SHARED, protection)
        finally:
            os.close(descriptor)
        self._call = ctypes.CFUNCTYPE(ctypes.c_uint64, *arguments)(_address_of(self._mapped))

    def __call__(self, *arguments: int) -> int:
        return int(self._call(*arguments))


@cache
def _synchroniser() -> _Routine:
    return _Routine(_ROUTINE, ctypes.c_uint64, ctypes.c_uint64)


def _address_of(mapped: Any) -> int:
    """Where livepro has a mapping, which it may not be allowed to write to."""
    return int(np.frombuffer(mapped, np.uint8, 1).ctypes.data)


def check_processor() -> None:
    """Raises LiveproError where the address of livepro's own mapping will not do."""
    kind = _Routine(_READ_TYPE)()
    if kind & 3 << 14 == _VIPT and not kind & _DIC:
        raise LiveproError(
            "This processor's instruction cache is indexed by virtual addresses: code that livepro "
            "writes might not be seen.",
            "Use `--engine block`.",
        )


def synchronise(code: Any, start: int, end: int) -> None:
    """Let every processor fetch what `code[start:end]` (a mapping of livepro's) now holds."""
    if start < end:
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        _synchroniser()(address + start, address + end)
