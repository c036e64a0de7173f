"""Words of AArch64 code, written into a cache's memory (see `encode`)."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.compiling.kernels import alike, kernel

load, store, move = alike(encode.load), alike(encode.store), alike(encode.move)
subtract, branch, branch_if_zero = alike(encode.subtract), alike(encode.branch), alike(encode.branch_if_zero)

_ADD, _ADD_HIGH = encode.add_immediate(0, 0, 0), encode.add_immediate(0, 0, 0, high=True)
_SUBTRACT, _SUBTRACT_HIGH = (
    encode.subtract_immediate(0, 0, 0),
    encode.subtract_immediate(0, 0, 0, high=True),
)
_PAGES = 0x10_0000  # of 4 KiB that adrp reaches, either way


@kernel
def put(image, at, word):
    """Write a word; returns the index behind it."""
    for i in range(4):
        image[at + i] = word >> 8 * i & 0xFF
    return at + 4


@kernel
def put_all(image, at, words):
    """Write some words; returns the index behind them."""
    for word in words:
        at = put(image, at, word)
    return at


@kernel
def add_immediate(to, source, amount, high):
    """add xd, xn, #amount (12 bits; `high`: shifted left by 12)"""
    return (_ADD_HIGH if high else _ADD) | amount << 10 | source << 5 | to


@kernel
def subtract_immediate(to, source, amount, high):
    """sub xd, xn, #amount (12 bits; `high`: shifted left by 12)"""
    return (_SUBTRACT_HIGH if high else _SUBTRACT) | amount << 10 | source << 5 | to


@kernel
def constant(image, at, register, value):
    """Write movz and as many movk as a 64-bit value needs."""
    begin, keep = at, 0
    for shift in range(4):
        part = value >> 16 * shift & 0xFFFF
        if part:
            at = put(image, at, 0xD2800000 | keep | shift << 21 | part << 5 | register)
            keep = 0x20000000
    return put(image, at, 0xD2800000 | register) if at == begin else at


@kernel
def address(image, at, here, register, value):
    """Write what puts an address into a register, to be executed at address `here`."""
    pages = (value >> 12) - (here >> 12)
    if pages < -_PAGES or pages >= _PAGES:
        return constant(image, at, register, value)
    at = put(image, at, 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register)
    low = value & 0xFFF
    return put(image, at, add_immediate(register, register, low, False)) if low else at


@kernel
def lead(image, field, destination):
    """Let the branch at an index lead to another, where no thread runs."""
    put(image, field, branch(destination - field))
