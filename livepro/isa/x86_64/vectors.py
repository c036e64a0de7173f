"""Vector and mask registers as the kernel gives them: an XSAVE area in the standard format.

Where its components are differs between processors (AVX-512's opmasks: 1088 on Intel's, 832 on
AMD's); CPUID says it (SDM vol. 1, 13.5 and 13.4.3).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

from livepro.isa.machine_code import call

_XCR0_AT = 464  # the enabled components: xstate_fx_sw_bytes in arch/x86/include/asm/fpu/xstate.h
_LEGACY = 512 + 64  # x87 and SSE state, and the header
_YMM, _OPMASK, _ZMM_HIGH, _ZMM_16 = 2, 5, 6, 7  # component numbers: SDM vol. 1, 13.1

# push rbx; mov eax, edi; mov ecx, esi; mov r8, rdx; cpuid; mov [r8], eax; mov [r8 + 4], ebx;
# mov [r8 + 8], ecx; mov [r8 + 12], edx; pop rbx; ret
_CPUID = bytes.fromhex("53 89f8 89f1 4989d0 0fa2 418900 41895804 41894808 4189500c 5b c3")


class Component(NamedTuple):
    """Bytes that an XSAVE component takes, where it is in the standard format, and whether it is
    aligned to 64 bytes in the compacted one."""

    size: int
    offset: int
    aligned: bool


@cache
def component(number: int) -> Component:
    """What CPUID says of a component (leaf 0DH)."""
    answer = (ctypes.c_uint32 * 4)()
    call(_CPUID, None, (ctypes.c_uint32, 0xD), (ctypes.c_uint32, number), (ctypes.c_void_p, answer))
    return Component(answer[0], answer[1], bool(answer[2] & 2))


def enabled(area: bytes) -> int:
    """The components that the kernel has enabled (XCR0)."""
    return int.from_bytes(area[_XCR0_AT : _XCR0_AT + 8], "little")


def area_size(components: int, *, compacted: bool) -> int:
    """Bytes that an XSAVE area with these components takes."""
    end = _LEGACY
    for number in range(2, 63):
        if components >> number & 1:
            size, offset, aligned = component(number)
            packed = (end + 63 & -64 if aligned else end) + size
            end = packed if compacted else max(end, offset + size)
    return end


def _part(area: bytes, number: int, at: int, size: int) -> bytes:
    """`size` bytes of a component; zeros where it is in its initial state or not there."""
    present = int.from_bytes(area[512:520], "little") >> number & 1
    start = component(number).offset + at if present else 0
    data = area[start : start + size] if present else b""
    return data.ljust(size, b"\0")


def opmask(area: bytes, number: int) -> int:
    """Mask register k0 to k7; k0 chooses all lanes."""
    return int.from_bytes(_part(area, _OPMASK, 8 * number, 8), "little")


def mmx(area: bytes, number: int) -> bytes:
    """MMX register mm0 to mm7."""
    return area[32 + 16 * number : 40 + 16 * number]


def vector(area: bytes, number: int) -> bytes:
    """Vector register zmm0 to zmm31: 64 bytes."""
    if number >= 16:
        return _part(area, _ZMM_16, 64 * (number - 16), 64)
    low = area[160 + 16 * number : 176 + 16 * number]  # xmm_space of struct fxregs_state
    return low + _part(area, _YMM, 16 * number, 16) + _part(area, _ZMM_HIGH, 32 * number, 32)
