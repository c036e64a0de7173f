"""Pieces of code and fields, written into a cache's memory."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.tables import FIELDS
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.tables import ADD_ONE

_CELL = int(Field.CELL)


@kernel
def put(image, at, pieces, bounds, number):
    """Write a prepared piece of code; returns the index behind it."""
    for i in range(bounds[number], bounds[number + 1]):
        image[at] = pieces[i]
        at += 1
    return at


@kernel
def copied(image, at, text, begin, end):
    """Write the program's own bytes; returns the index behind them."""
    for i in range(begin, end):
        image[at] = text[i]
        at += 1
    return at


@kernel
def write_32(image, at, value):
    """Write 32 bits, where no thread runs."""
    for i in range(4):
        image[at + i] = value >> 8 * i & 0xFF


@kernel
def write_64(image, at, value):
    """Write 64 bits, where no thread runs."""
    for i in range(8):
        image[at + i] = value >> 8 * i & 0xFF


@kernel
def read_32(image, at):
    """The 32 bits at an index, unsigned."""
    value = 0
    for i in range(4):
        value |= int(image[at + i]) << 8 * i
    return value


@kernel
def note(state, fields, kind, at):
    """Take note of a field of a copy (`Emitted.fields`)."""
    n = state[FIELDS]
    fields[n, 0], fields[n, 1] = kind, at
    state[FIELDS] = n + 1


@kernel
def add_one(state, image, at, pieces, bounds, fields, register, cell):
    """Count in a register that nobody needs, without touching flags."""
    begin = at
    at = put(image, at, pieces, bounds, ADD_ONE + register)
    write_32(image, begin + 5, cell)
    note(state, fields, _CELL, begin + 5)
    write_32(image, at - 4, cell)
    note(state, fields, _CELL, at - 4)
    return at
