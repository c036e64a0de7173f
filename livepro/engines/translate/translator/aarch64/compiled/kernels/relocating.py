"""What stands for instructions that name addresses (see `relocation`)."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.aarch64 import encode, relocation
from livepro.engines.translate.translator.aarch64.compiled.kernels.decoding import signed
from livepro.engines.translate.translator.aarch64.compiled.kernels.writing import (
    address,
    branch,
    load,
    move,
    put,
    store,
)
from livepro.engines.translate.translator.aarch64.encode import BASE, SP, X0, X1
from livepro.engines.translate.translator.aarch64.machine import SPILL_LENT, SPILL_PAIR
from livepro.engines.translate.translator.compiling.kernels import kernel

_NOP = encode.NOP
_GENERAL, _VECTOR = relocation.GENERAL, relocation.VECTOR


@kernel
def put_address(image, at, here, word, pc):
    """ADR or ADRP of `pc`: the same address, put together from `here`."""
    immediate = signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
    value = (pc & -0x1000) + (immediate << 12) if word >> 31 else pc + immediate
    register = word & 31
    return put(image, at, _NOP) if register == SP else address(image, at, here, register, value)


@kernel
def put_literal(image, at, here, word, pc):
    """A pc-relative load or prefetch: the address in a register, then the same access."""
    register, vector, size = word & 31, word >> 26 & 1, word >> 30
    value = pc + signed(word >> 5, 19) * 4
    access = (_VECTOR[size] if vector else _GENERAL[size]) | register
    if not vector and size != 3 and register != SP:
        at = address(image, at, here, register, value)
        return put(image, at, access | register << 5)
    at = put(image, at, store(X0, BASE, SPILL_LENT))
    at = address(image, at, here + 4, X0, value)
    at = put(image, at, access | X0 << 5)
    return put(image, at, load(X0, BASE, SPILL_LENT))


@kernel
def put_branch(image, at, word):
    """A conditional branch up to where the B to its target stands, which it is inverted over."""
    top = word >> 24 & 0x7F
    if top == 0x54 and word & 14 != 14:
        return put(image, at, (word & 0xFF00001F ^ 1) | 2 << 5)
    if top == 0x54:  # always
        at = put(image, at, word & 0xFF00001F | 2 << 5)
        return put(image, at, branch(8))
    kept = 0xFFF8001F if top >= 0x36 else 0xFF00001F
    return put(image, at, (word & kept) ^ 1 << 24 | 2 << 5)


@kernel
def put_target(image, at, source, dirty):
    """Bring the target of an indirect branch into x0; x0 and x1 are spilled, and hold other things if
    `dirty`."""
    if source in (X0, X1):
        if source == X0 and not dirty:
            return at
        return put(image, at, load(X0, BASE, SPILL_PAIR + 8 * source))
    return put(image, at, move(X0, source))
