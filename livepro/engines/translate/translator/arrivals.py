"""Where threads have come to that had no fragment there: what one process comes to, others of the same run
that map the same file will."""

from __future__ import annotations

from typing import NamedTuple

from livepro.linux.proc import Mapping

AT_ONCE = 64
"""Places that are heeded when a thread stops: as many as take a few milliseconds to translate."""


class Arrival(NamedTuple):
    """A place in a module (offset), and whether it was come to by an indirect branch."""

    offset: int
    lands: bool


class FileArrivals:
    """The arrivals in one file in the order of the first at each place (`all`)."""

    def __init__(self) -> None:
        self.all: list[Arrival] = []
        self._known: set[Arrival] = set()

    def add(self, arrival: Arrival) -> None:
        """A thread has come to a place."""
        if arrival not in self._known:
            self._known.add(arrival)
            self.all.append(arrival)


class Arrivals:
    """The arrivals in each file, by all processes of a run that translate in the same way."""

    def __init__(self) -> None:
        self._by_file: dict[tuple[object, ...], FileArrivals] = {}

    def of(self, module: Mapping) -> FileArrivals:
        """Those in a module's file, to be added to."""
        key = module.path, module.inode, module.offset, module.end - module.start
        found = self._by_file.get(key)  # (It is asked at each stop at new code.)
        if found is None:
            found = self._by_file[key] = FileArrivals()
        return found
