"""Where a sample is: the code mappings of every process, as the records tell of them."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from livepro.linux import proc
from livepro.linux.sampling.records import Executed, Forked, Mapped, Record

ANONYMOUS = "[anon]"
"""The module of code that is in no file, as a run names it."""


class Located(NamedTuple):
    """A place in a module: its path and the offset in the file; for code that is in none, the address."""

    module: str
    offset: int


class Spaces:
    """The code mappings of processes, brought up to date record by record, in order of time."""

    def __init__(self) -> None:
        self._mappings: dict[int, list[Mapped]] = {}

    def begin(self, pid: int) -> None:
        """Take the mappings of a process that runs already from /proc."""
        try:
            space = proc.address_space(pid)
        except OSError:
            return
        self._mappings[pid] = [
            Mapped(0, pid, m.start, m.end, m.offset, m.path) for m in space.mappings if m.executable
        ]

    def follow(self, record: Record) -> None:
        """What a record changes."""
        if isinstance(record, Mapped):
            self._map(record)
        elif isinstance(record, Forked):
            self._mappings[record.pid] = list(self._mappings.get(record.parent, ()))
        elif isinstance(record, Executed):
            self._mappings.pop(record.pid, None)

    def locate(self, pid: int, address: int) -> Located:
        """Where the code at an address of a process comes from."""
        found = self._mappings.get(pid, [])
        at = bisect_right(found, address, key=lambda m: m.start) - 1
        if at < 0 or address >= found[at].end:
            return Located(ANONYMOUS, address)
        mapping = found[at]
        if mapping.path.startswith("/") and not mapping.path.startswith(("//anon", "/memfd:", "/dev/zero")):
            return Located(mapping.path, address - mapping.start + mapping.offset)
        if mapping.path in ("[vdso]", "[vsyscall]"):
            return Located(mapping.path, address - mapping.start)
        return Located(ANONYMOUS, address)

    def _map(self, new: Mapped) -> None:
        """Enter a mapping in the place of what it covers."""
        kept: list[Mapped] = []
        for old in self._mappings.get(new.pid, ()):
            if old.start < new.start:
                kept.append(old._replace(end=min(old.end, new.start)))
            if old.end > new.end:
                start = max(old.start, new.end)
                kept.append(old._replace(start=start, offset=old.offset + start - old.start))
        kept.append(new)
        self._mappings[new.pid] = sorted(kept, key=lambda m: m.start)
