"""A stream of what misses in a first-level cache, and of nothing else.

A thread simulates its first-level caches as it executes, one of data and one of code, with LRU: each is
there in its area, the lines of a set from the one used last. What hits is left out of the stream; how often
each instruction was executed is counted anyway.

An entry of such a stream is two words. The first names a block and a place in it, the second is a word of
the block's accesses (`livepro.isa.access`), or nothing for a fetch; the place says which of its lines
missed (`LAST_MISSED`, `FIRST_MISSED`), or neither, if nobody has looked. Caches of a thread are empty where
a chunk begins, since other threads may have had a turn; where it ends, and in front of accesses that nobody
has looked at, an entry (`ORDER`) has their lines: with these, and what missed, whoever consumes the stream
knows of any cache that began the chunk with some lines what missed in it, and what it ends with. (A line
that is among the last `ways` of its set in the chunk is so in all of the run.)
"""

from __future__ import annotations

from typing import NamedTuple

PAGE = 4096
"""Bytes of code whose lines are in different sets, at most: so the set of a line is known by where the line
is in its page, before the program is loaded."""
LEAST_LINE = 64
"""Bytes of a line: no plain access is in more than two."""
ENTRY = 2
"""Words of an entry."""
PLACE_SHIFT = 32
"""Where the place is in an entry's first word; below is the number of the block. It is the number of the
access word in a record of the block, from 1 on, or with `FETCH` that of an instruction."""
FETCH = 1 << 30
LAST_MISSED = 1 << 29
"""The line that an access ends in was none of its set's."""
FIRST_MISSED = 1 << 28
"""The same of the line that it begins in, if that is another one."""
ORDER = 1 << 27
"""The entry's second word tells how many words are behind it: the lines of a cache, as a thread has them
(`Lines`), of each set from the one used last. The number is 0 for data, 1 for code."""
TAG_SHIFT = 48
"""Where an entry's second word tells the block's execution, modulo 2**16, if it is an address or a fetch: an
entry of an instruction that was not executed after all is taken back."""
ADDRESS = (1 << TAG_SHIFT) - 1
NO_LINE = 1 << 63
"""In a cache of data: no address minus the line. (It has the addresses of its lines negated.)"""
NO_CODE = 1
"""In a cache of code: no line."""
LARGEST = 1 << 15
"""Bytes that a thread has for a cache."""
MOST_WAYS = 64


class Lines(NamedTuple):
    """A cache with `sets` of so many `ways`, of lines of `line` bytes. What a thread has of it are rows of
    a word for each 8 bytes of a line: of each set one, then of each set another one for what is more."""

    line: int
    sets: int
    ways: int

    @property
    def mask(self) -> int:
        """The bits of an address that say where its set's first row is: bytes from the first one."""
        return (self.sets - 1) * self.line

    @property
    def words(self) -> int:
        """The words of all rows."""
        return -(-self.ways * 8 // self.line) * self.sets * self.line // 8

    def offset(self, way: int) -> int:
        """Bytes from a set's first row to a way."""
        row, within = divmod(8 * way, self.line)
        return row * self.sets * self.line + within

    def way(self, offset: int) -> int:
        """The way at so many bytes from the first row of all."""
        rows, within = divmod(offset, self.sets * self.line)
        return (rows * self.line + within % self.line) // 8

    @property
    def packed(self) -> int:
        """All of it in a number of 64 bits."""
        return self.line | self.sets << 16 | self.ways << 32

    @classmethod
    def unpacked(cls, number: int) -> Lines:
        """What has been `packed`."""
        return cls(*(number >> shift & 0xFFFF for shift in (0, 16, 32)))


class Filter(NamedTuple):
    """What is left out: accesses and fetches that hit in a thread's caches of `data` and of `code`."""

    data: Lines
    code: Lines


class Repeats(NamedTuple):
    """What is left out: all blocks but those with repeated instructions, which are recorded whole. How often
    others were executed is counted."""


def filter_of(data: Lines, code: Lines) -> Filter | None:
    """What leaves out what hits in these caches; None if a thread cannot have them."""
    for lines in (data, code):
        if lines.line < LEAST_LINE or lines.line > PAGE // 2 or lines.ways > MOST_WAYS:
            return None
        if lines.words * 8 > LARGEST or lines.sets & lines.sets - 1:
            return None
    return Filter(data, code) if code.sets * code.line <= PAGE else None
