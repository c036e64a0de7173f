"""Traces in lines of text: Dinero's `din`, and what Valgrind's lackey prints with --trace-mem=yes.

din (Dinero IV's manual): ``label address``, hexadecimal without 0x, label 0 a read, 1 a write, 2 an
instruction fetch. lackey (its manual): ``I  address,size``, `` L address,size``, `` S``, and `` M`` for
an instruction that modifies. An interrupted repeated instruction has accesses before it is fetched
again: as lines of their own.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

LONGEST = 48
"""Bytes of a line, at most."""


@njit(nogil=True, cache=True)
def put_hex(out, at, value, least):
    """Write a number in hexadecimal, with at least so many digits; where it ends."""
    digits = least
    while digits < 16 and (value >> (4 * digits)) & 0x0FFFFFFFFFFFFFFF and value >> (4 * digits) != 0:
        digits += 1
    for n in range(digits - 1, -1, -1):
        digit = (value >> (4 * n)) & 15
        out[at] = digit + (48 if digit < 10 else 87)
        at += 1
    return at


@njit(nogil=True, cache=True)
def put_decimal(out, at, value):
    """Write a number in decimal; where it ends."""
    digits, power = 1, 10
    while value >= power:
        digits += 1
        power *= 10
    for n in range(digits - 1, -1, -1):
        out[at + n] = 48 + value % 10
        value //= 10
    return at + digits


@njit(nogil=True, cache=True)
def din(what, where, size, count, out):
    """Write the events as din; how many bytes that is."""
    at = 0
    for e in range(count):
        does = what[e]
        if does > 3:
            continue
        out[at] = 50 if does == 0 else (48 if does == 1 else 49)
        out[at + 1] = 32
        at = put_hex(out, at + 2, where[e], 1)
        out[at] = 10
        at += 1
    return at


@njit(nogil=True, cache=True)
def lackey(what, where, size, count, out):
    """Write the events as lackey does; how many bytes that is."""
    at = 0
    for e in range(count):
        does = what[e]
        if does > 2:
            continue
        if does == 0:
            out[at], out[at + 1] = 73, 32
        else:
            out[at], out[at + 1] = 32, 83
            if does == 1:
                out[at + 1] = 77 if e + 1 < count and what[e + 1] == 3 and where[e + 1] == where[e] else 76
        out[at + 2] = 32
        at = put_hex(out, at + 3, where[e], 8)
        out[at] = 44
        at = put_decimal(out, at + 1, size[e])
        out[at] = 10
        at += 1
    return at


class TextWriter:
    """Writes one thread's trace by a kernel, `din` or `lackey`."""

    def __init__(self, output, kernel) -> None:
        self._output = output
        self._kernel = kernel
        self._text = np.zeros(0, np.uint8)

    def put(self, events, tables) -> None:
        """The next events."""
        if len(self._text) < events.count * LONGEST:
            self._text = np.zeros(events.count * LONGEST, np.uint8)
        end = self._kernel(events.what, events.where, events.size, events.count, self._text)
        self._output.write(memoryview(self._text[:end]))

    def close(self) -> None:
        """Nothing is held back."""
