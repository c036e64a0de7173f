"""Bits of a word, in compiled code."""

# mypy: ignore-errors

from __future__ import annotations

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic


@intrinsic
def length_of(typing_context, number):
    """Bits up to the highest one that is set, of 64: 0 for 0, 64 for a negative number (LLVM's ctlz)."""

    def generate(context, builder, signature, arguments):
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.uint64(types.int64), generate


if config.DISABLE_JIT:

    def length_of(number):
        """The same in plain Python."""
        return (int(number) & (1 << 64) - 1).bit_length()
