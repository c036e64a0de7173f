"""The event stream: which blocks each thread executed, in order, and which addresses it accessed.

A record is a word that names a block, and then the words of the accesses of its instructions
(`livepro.isa.access`), in order: as many as the block's static access lists say. What is irregular has
a flag in the first word.
"""

from __future__ import annotations

PARTIAL = 1
"""Only the block's first k instructions were executed; their words follow, and no others."""
INTERRUPTED = 2
"""With PARTIAL: the words of instruction k follow, too, a repeated string instruction that was
interrupted between two iterations."""
GOES_ON = 4
"""No block: what has been executed leads to the address in the word behind; what follows in the stream
is elsewhere (a signal handler), or there is nothing (the thread was let go)."""

FLAGS_SHIFT = 32
"""Where the flags are in a record's first word; below is the number of the block."""
FLAGS = 0xFF
"""What there is of them, shifted."""
COUNT_SHIFT = 40
"""Where k is."""
NUMBER = (1 << FLAGS_SHIFT) - 1
"""The bits of the block's number."""


def head(number: int, flags: int = 0, count: int = 0) -> int:
    """A record's first word."""
    return number | flags << FLAGS_SHIFT | count << COUNT_SHIFT
