"""Vector and predicate registers as the kernel gives them (NT_ARM_SVE).

Documentation/arch/arm64/sve.rst and arch/arm64/include/uapi/asm/ptrace.h: a header of 16 bytes, then Z0 to
Z31, P0 to P15 and FFR; or V0 to V31, where the thread has nothing else in its vector registers.
"""

from __future__ import annotations

from typing import Final

_HEADER: Final = 16
_LENGTH_AT: Final = 8  # user_sve_header.vl, in bytes
_FLAGS_AT: Final = 12
_SCALABLE: Final = 1  # SVE_PT_REGS_SVE
_VECTORS: Final = 32


def length(state: bytes) -> int:
    """Bytes of a vector register; 0 for a processor without SVE."""
    return int.from_bytes(state[_LENGTH_AT : _LENGTH_AT + 2], "little")


def _is_scalable(state: bytes) -> bool:
    return bool(int.from_bytes(state[_FLAGS_AT : _FLAGS_AT + 2], "little") & _SCALABLE)


def vector(state: bytes, number: int) -> bytes:
    """The bytes of Z`number`."""
    size = length(state)
    if _is_scalable(state):
        return state[_HEADER + number * size : _HEADER + (number + 1) * size]
    return state[_HEADER + number * 16 : _HEADER + (number + 1) * 16].ljust(size, b"\0")


def predicate(state: bytes, number: int) -> int:
    """P`number`: a bit for each byte of a vector, the lowest byte's the lowest."""
    size = length(state)
    if not _is_scalable(state):
        return 0
    at = _HEADER + _VECTORS * size + number * (size // 8)
    return int.from_bytes(state[at : at + size // 8], "little")
