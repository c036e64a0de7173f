"""Where threads have come to that had no fragment there: what one process comes to, others of the same run
that map the same file will."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from livepro.linux.proc import Mapping

FEWEST, MOST = 8, 512
"""Arrivals behind one that a process comes to as well which are heeded: the fewest at first, twice as many
each time that it comes to the next ones."""


class Arrival(NamedTuple):
    """A place in a module (offset), and whether it was come to by an indirect branch."""

    offset: int
    lands: bool


class FileArrivals:
    """The arrivals in one file in the order of the first at each place (`all`)."""

    def __init__(self) -> None:
        self.all: list[Arrival] = []
        self._known: dict[Arrival, int] = {}

    def add(self, arrival: Arrival) -> int | None:
        """A thread has come to a place. Returns its number, if another one has been there."""
        number = self._known.setdefault(arrival, len(self.all))
        if number < len(self.all):
            return number
        self.all.append(arrival)
        return None


class Follower:
    """How one process follows others that have been in the same file: where it has come to a place as they
    did, it will probably come to those that they have come to next."""

    def __init__(self, seen: int = 0) -> None:
        self.seen = seen  # arrivals that are known of
        self._next = 0
        self._width = FEWEST

    def copy(self) -> Follower:
        """The same for a forked child."""
        return Follower(self.seen)

    def wanted(self, arrivals: FileArrivals, numbers: Iterable[int | None]) -> list[Arrival]:
        """The arrivals to be heeded where it has come to those of these numbers (None: to a new place)."""
        found: dict[int, None] = {}
        self.seen = last = len(arrivals.all)
        for number in numbers:
            if number is None:
                continue
            behind = number + 1
            if behind in found or behind >= last:
                continue
            near = self._next - 1 <= number < self._next + self._width
            self._width = min(2 * self._width, MOST) if near else FEWEST
            self._next = behind + self._width
            found.update(dict.fromkeys(range(behind, min(self._next, last))))
        return [arrivals.all[number] for number in found]


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
