"""Where an array's data is, in compiled code."""

# mypy: ignore-errors

from __future__ import annotations

from numba import carray, config, njit
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def pointer(typing_context, array):
    """The address of an array's first element, typed: what `numba.carray` takes."""

    def generate(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


@njit(nogil=True, cache=True, forceinline=True)
def borrowed(array):
    """The same array, but one that owns nothing: of others numba counts references at each call."""
    return carray(pointer(array), array.shape)


if config.DISABLE_JIT:

    def borrowed(array):
        """The array: plain Python counts references itself."""
        return array
