"""Perf maps: what a JIT compiler says of its code in a text file, for perf and for us.

A line is ``START SIZE NAME``, the numbers hexadecimal (tools/perf/Documentation/jit-interface.txt of
Linux). A compiler appends a line when it has made a function, so a later line takes the place of earlier
ones that it overlaps.
"""

from __future__ import annotations

import os
from typing import NamedTuple


class NamedCode(NamedTuple):
    """Code in [start, end) and what its maker calls it."""

    start: int
    end: int
    name: str


class GrowingFile:
    """A file that another process appends to, read bit by bit.

    It is read only while it is `owner`'s (a user id) and has been written to at `since` or later (seconds
    since the epoch): files like these are left behind, and process ids are used again.
    """

    def __init__(self, path: str, owner: int, since: float) -> None:
        self.path = path
        self._owner = owner
        self._since = since
        self._identity = (-1, -1)
        self._size = 0

    def more(self) -> tuple[bool, bytes]:
        """What has been added since the last time, and whether it is another file now, to be read from its
        beginning. Nothing where it cannot be read."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False, b""
        identity = status.st_dev, status.st_ino
        anew = identity != self._identity or status.st_size < self._size
        if not anew and status.st_size == self._size:
            return False, b""
        if status.st_uid not in (self._owner, 0) or status.st_mtime < self._since:
            return False, b""
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(0 if anew else self._size)
                data = file.readall()
        except OSError:
            return False, b""
        self._size = (0 if anew else self._size) + len(data)
        self._identity = identity
        return anew, data


class PerfMap:
    """A perf map that grows."""

    def __init__(self, file: GrowingFile) -> None:
        self._file = file
        self._rest = b""

    def news(self) -> list[NamedCode]:
        """What has been added since the last time, in the order of the file."""
        anew, data = self._file.more()
        if anew:
            self._rest = b""
        if not data:
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [code for line in lines if (code := parse_line(line)) is not None]


def parse_line(line: bytes) -> NamedCode | None:
    """What one line says; None where it is malformed or its code is empty."""
    fields = line.split(maxsplit=2)
    if len(fields) != 3:
        return None
    try:
        start, size = int(fields[0], 16), int(fields[1], 16)
    except ValueError:
        return None
    name = fields[2].strip().decode(errors="backslashreplace")
    return NamedCode(start, start + size, name) if size > 0 and start >= 0 and name else None
