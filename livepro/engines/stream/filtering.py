"""A stream without the accesses and fetches that change nothing in a first-level cache.

With LRU, an access to the line that its set was last accessed at hits, and leaves the order as it is. How
often each instruction was executed is counted anyway: so such an access may be left out of the stream, and
the simulation of what is left has the same misses. A thread keeps the lines that its sets were last accessed
at, of data and of code, in slots: one for each set, or one for several.

An entry of such a stream is two words. The first names a block and a place in it, the second is a word of the
block's accesses (`livepro.isa.access`), or nothing for a fetch.
"""

from __future__ import annotations

from typing import NamedTuple

PAGE = 4096
"""Bytes of the slots of a thread: a line's slot is where it is in its page, so it is known before the program
is loaded."""
LEAST_LINE = 64
"""Bytes of a line: no plain access is in more than two."""
ENTRY = 2
"""Words of an entry."""
PLACE_SHIFT = 32
"""Where the place is in an entry's first word; below is the number of the block. It is the number of the
access word in a record of the block, from 1 on, or with `FETCH` that of an instruction."""
FETCH = 1 << 30
TAG_SHIFT = 48
"""Where an entry's second word tells the block's execution, modulo 2**16, if it is an address or a fetch: an
entry of an instruction that was not executed after all is taken back."""
ADDRESS = (1 << TAG_SHIFT) - 1
NO_LINE = 1 << 63
"""In a slot of data: no address minus the line. (Slots hold lines negated.)"""
NO_CODE = 1
"""In a slot of code: no line."""


class Lines(NamedTuple):
    """Lines of `line` bytes in so many `slots`."""

    line: int
    slots: int

    @property
    def mask(self) -> int:
        """The bits of an address that say where its slot is: bytes from the first one."""
        return (self.slots - 1) * self.line


class Filter(NamedTuple):
    """What is left out: accesses and fetches that a thread's slots of `data` and of `code` tell to hit."""

    data: Lines
    code: Lines


class Repeats(NamedTuple):
    """What is left out: all blocks but those with repeated instructions, which are recorded whole. How often
    others were executed is counted."""


def lines_of(line: int, sets: int) -> Lines | None:
    """The slots for a cache with LRU sets of so many lines of `line` bytes; None if there can be none."""
    if line < LEAST_LINE or line > PAGE // 2:
        return None
    return Lines(line, min(sets, PAGE // line))
