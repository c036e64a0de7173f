"""Reading a process's code: from memory to decoded basic blocks."""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from livepro.isa.base import CodeBlock, Isa, Quirk
from livepro.model import Flow

_CHUNK = 256  # bytes; most blocks are shorter, and a read costs more than its length
LONGEST_BLOCK = 1 << 14
"""Bytes of code. What goes on for longer without a terminator is several blocks, to all engines: a program
that runs through a mapping of zero bytes would have blocks of megabytes. (The longest in the libcrypto of
Debian 12 has 10,670 bytes, in NumPy's OpenBLAS 3,332.)"""


class Readable(Protocol):
    """Memory to read code from: a `linux.proc.Memory`, or what stands for one."""

    def read(self, address: int, size: int) -> bytes:
        """Up to `size` bytes from `address`, fewer where the mapping ends."""


def read_block(isa: Isa, memory: Readable, address: int) -> CodeBlock:
    """The basic block that starts at `address`.

    A block that runs into bytes that cannot be decoded or read ends before
    them, one that goes on for long at `LONGEST_BLOCK`. When the first instruction
    is such, the result is one INVALID instruction (without bytes if there are none
    to read), which will fault.
    """
    size = _CHUNK
    while True:
        code = memory.read(address, size)
        block = isa.decode_block(code, address)
        if block.truncated and len(code) == size and size < LONGEST_BLOCK:
            size = min(size * 4, LONGEST_BLOCK)
            continue
        if len(block):
            return block
        return CodeBlock(
            address=address,
            code=code[:1],
            addresses=(address, address + 1),
            flows=(Flow.INVALID,),
            reps=(False,),
            quirks=(Quirk.NONE,),
            target=None,
            truncated=False,
        )


def cut_at(block: CodeBlock, places: Container[int]) -> CodeBlock:
    """The block up to the first instruction, behind its own first, that stands at one of `places`."""
    for count, address in enumerate(block.addresses[1:-1], 1):
        if address in places:
            return CodeBlock(
                address=block.address,
                code=block.code[: address - block.address],
                addresses=block.addresses[: count + 1],
                flows=block.flows[:count],
                reps=block.reps[:count],
                quirks=block.quirks[:count],
                target=None,
                truncated=True,
            )
    return block
