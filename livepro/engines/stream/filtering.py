"""A stream of what may miss in a first-level cache, and of nothing else.

Of what it fetches a thread leaves out what is in the line that its set used last. What it accesses it
simulates as it executes, with LRU: the cache of data is there in its area, the lines of a set from the one
used last, and what hits is left out. How often each instruction was executed is counted anyway.

An entry of such a stream is two words. The first names a block and a place in it, the second is a word of
the block's accesses (`livepro.isa.access`), or where it fetches (`FETCH`); the place says which lines of an
access missed (`LAST_MISSED`, `FIRST_MISSED`), or neither, if nobody has looked. The cache of a thread is
empty where a chunk begins, since other threads may have had a turn; where it ends, and in front of accesses
that nobody has looked at, an entry (`ORDER`) has its lines: with these, and what missed, whoever consumes the
stream knows of any cache that began the chunk with some lines what missed in it, and what it ends with. (A
line that is among the last `ways` of its set in the chunk is so in all of the run.)
"""

from __future__ import annotations

from typing import NamedTuple

from livepro.errors import LiveproError

PAGE_SHIFT = 12
PAGE = 1 << PAGE_SHIFT
"""Bytes of code whose lines are in different sets, and fill a way of all: so the set of a line is known by
where the line is in its page, before the program is loaded, and what else tells it from others is the number
of the page."""
LEAST_LINE = 64
"""Bytes of a line: no plain access is in more than two."""
ENTRY = 2
"""Words of an entry."""
PLACE_SHIFT = 32
"""Where the place is in an entry's first word; below is the number of the block. It is the number of the
access word in a record of the block, from 1 on, or with `FETCH` that of an instruction."""
FETCH = 1 << 30
"""The entry's second word tells what is fetched: the number of the page (32 bits), where in the page it
begins (12 bits), and its bytes minus one (4 bits)."""
WITHIN_SHIFT, SPAN_SHIFT = 32, 44
"""Where they are in it."""
LAST_MISSED = 1 << 29
"""The line that an access ends in was none of its set's."""
FIRST_MISSED = 1 << 28
"""The same of the line that it begins in, if that is another one."""
ORDER = 1 << 27
"""The entry's second word tells how many words are behind it: the lines of data, as a thread has them
(`Lines`), of each set from the one used last."""
HITS = 1 << 26
"""The entry's second word tells how many accesses an instruction made under a mask: who counts accesses
must know. With `LAST_MISSED` or `FIRST_MISSED` it is the address of one of them that missed, and the place
says how many bytes it has, minus one (`BYTES_SHIFT`)."""
BYTES_SHIFT = 20
"""Where they are in such a place; below is the number of the access word."""
MOST_BYTES = 1 << 6
"""As many bytes a register has."""
TAG_SHIFT = 48
"""Where an entry's second word tells the block's execution, modulo 2**16, if it is an address, a fetch or
`HITS`: an entry of an instruction that was not executed after all is taken back."""
ADDRESS = (1 << TAG_SHIFT) - 1
NO_LINE = 1 << 63
"""In a cache of data: no address minus the line. (It has the addresses of its lines negated.)"""
NO_CODE = 0
"""The page of no code."""
_NUMBERED = 32
"""Bits of a page's number that code is told apart by."""
_GRANULE_SHIFT = 16
"""Pages are looked at by so many bytes at once."""
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

    def number(self, address: int) -> int:
        """The set of an address."""
        return address // self.line % self.sets

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


def word_of(place: int) -> int:
    """The number of the access word in a place, or that of the instruction and `FETCH`."""
    return place & (1 << BYTES_SHIFT) - 1 if place & HITS else place & ~(LAST_MISSED | FIRST_MISSED)


class CodePages:
    """The pages of code that a process has, or has had. Two of them whose numbers differ in no more than
    their higher bits could not be told apart (`_NUMBERED`): such are 16 TiB from each other."""

    def __init__(self) -> None:
        self._higher: dict[int, int] = {}

    def claim(self, start: int, end: int) -> None:
        """There is code at addresses from `start` on and before `end`. Raises LiveproError if it could not be
        told from other code."""
        bits = PAGE_SHIFT + _NUMBERED
        higher, first = start >> bits, start & (1 << bits) - 1
        if first >> PAGE_SHIFT == NO_CODE:
            raise _cannot_be_told(start)
        last = first + end - start - 1
        for granule in range(first >> _GRANULE_SHIFT, (last >> _GRANULE_SHIFT) + 1):
            if self._higher.setdefault(granule, higher) != higher:
                raise _cannot_be_told(start)


def _cannot_be_told(start: int) -> LiveproError:
    return LiveproError(
        f"Code at {start:#x} could not be told from other code, 16 TiB away.",
        "Let all of the stream be recorded (--analysis cachesim:filtered=False).",
    )


class Filter(NamedTuple):
    """What is left out: accesses that hit in a thread's cache of `data`, and fetches of the lines that their
    sets of a cache of `code` used last."""

    data: Lines
    code: Lines


class Repeats(NamedTuple):
    """What is left out: all blocks but those with repeated instructions, which are recorded whole. How often
    others were executed is counted."""


def filter_of(data: Lines, code: Lines) -> Filter | None:
    """What leaves out what hits in these caches; None if a thread cannot have them."""
    if data.ways > MOST_WAYS or data.words * 8 > LARGEST or data.sets & data.sets - 1:
        return None
    if any(lines.line < LEAST_LINE or lines.line > PAGE // 2 for lines in (data, code)):
        return None
    return Filter(data, code) if code.sets * code.line == PAGE else None
