"""A stream as plain events, in plain Python: slow, and the reference of what kernels see."""

from __future__ import annotations

from collections.abc import Iterator

from livepro.engines.stream import (
    COUNT_SHIFT,
    FLAGS,
    FLAGS_SHIFT,
    GOES_ON,
    INTERRUPTED,
    NUMBER,
    PARTIAL,
)
from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.stream.recorder import Words
from livepro.isa.access import READ, pieces

Event = tuple[str, int, int]
"""("I", address, bytes) for an instruction executed, ("L" or "S", address, bytes) for what it then loads
or stores, ("G", address, 0) for where control goes on behind a signal handler."""


def flatten(blocks: StreamBlocks, words: Words) -> Iterator[Event]:
    """The events of a stream, in order. A repeated string instruction that was interrupted has its
    accesses, but is no instruction executed."""
    at, stream = 0, words.tolist()
    while at < len(stream):
        first = stream[at]
        at += 1
        flags = first >> FLAGS_SHIFT & FLAGS
        if flags & GOES_ON:
            yield "G", stream[at], 0
            at += 1
            continue
        number = first & NUMBER
        block, sizes = blocks.blocks[number], blocks.sizes[number]
        count = first >> COUNT_SHIFT if flags & PARTIAL else len(sizes)
        address = block.address
        for index in range(count + bool(flags & INTERRUPTED)):
            if index < count:
                yield "I", address, sizes[index]
            accesses = block.accesses[index]
            end = at + sum(access.words for access in accesses)
            for kind, place, size in pieces(accesses, stream[at:end]):
                yield ("L" if kind == READ else "S"), place, size
            at = end
            address += sizes[index]
