"""Copies dropped all at once, when there is no more room for new ones.

From then on whoever comes to the start of a dropped copy, or to an exit of one, stops, and goes on
in a new copy. A dropped generation's memory and counters are used again once no thread is in it any
more (`evicting`). A thread that sleeps in a system call may stay there for as long as the program
runs: of what it will come back to, all but that place is given up.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.cache import SMALLEST, Cache, Caches
from livepro.engines.translate.codecache.fragment import Place
from livepro.engines.translate.codecache.stop_reasons import PinnedStop, Stop, SupersededStop
from livepro.engines.translate.counting.counters import Cells
from livepro.engines.translate.memory import SharedFile
from livepro.linux.proc import Mapping

Range = tuple[int, int]


class EvictedBlock(NamedTuple):
    """What is kept of a block that has no copy: its address, its bytes, and the sizes of its instructions."""

    pc: int
    code: bytes
    sizes: bytes


class CacheFile:
    """A file that caches lie in, near `module` or for any code; `fixed` is the part of it that outlives
    generations."""

    def __init__(self, file: SharedFile, module: Mapping | None) -> None:
        self.file = file
        self.module = module
        whole = Cache(file)
        self.fixed = Cache(file, part=(whole.end, file.base + file.size))

    def fork(self, file: SharedFile) -> CacheFile:
        """The same for a copy of its file."""
        child = CacheFile(file, self.module)
        child.fixed = self.fixed.fork(file)
        return child

    def largest_gap(self, taken: Iterable[Range]) -> Range | None:
        """The largest part of the file, in whole pages, that is not `taken`; None where it is of no use."""
        at, best = self.file.base, (0, 0)
        end = self.fixed.first
        for start, behind in sorted((*taken, (end, end))):
            if behind <= self.file.base or start > end:
                continue
            start &= -layout.PAGE
            if start - at > best[1] - best[0]:
                best = at, start
            at = max(at, (behind + layout.PAGE - 1) & -layout.PAGE)
        return best if best[1] - best[0] >= SMALLEST else None

    def release(self, taken: Iterable[Range]) -> None:
        """Give the memory of all pages back that are not `taken`."""
        base, at = self.file.base, self.file.base
        end = self.fixed.first
        for start, behind in sorted((*taken, (end, end))):
            if behind <= base or start > end:
                continue
            start &= -layout.PAGE
            if start > at:
                self.file.map.madvise(mmap.MADV_REMOVE, at - base, start - at)
            at = max(at, (behind + layout.PAGE - 1) & -layout.PAGE)


@dataclass
class FlushedGeneration:
    """A generation that threads may still be in. `starts` leads from the starts of its copies to the
    program's addresses."""

    caches: Caches
    stops: dict[int, Stop]
    exits: dict[int, int]
    starts: dict[int, int]
    cells: Cells

    def holds(self, address: int) -> bool:
        """Whether a target address lies in one of its caches."""
        return self.cache_at(address) is not None

    def cache_at(self, address: int) -> Cache | None:
        """The cache of its own that holds a target address."""
        cache = self.caches.at(address)
        if cache is None or not any(start <= address <= end for start, end in cache.used):
            return None
        return cache if cache.starts else None

    def locate(self, address: int) -> Place | None:
        """Where a cache address is in the program."""
        cache = self.cache_at(address)
        return None if cache is None else cache.locate(address)

    def stop_at(self, address: int) -> Stop | None:
        """What the int3 at a cache address is for: whoever enters a copy must look for the new one."""
        pc = self.starts.get(address, self.exits.get(address))
        if pc is not None:
            return SupersededStop(pc)
        return self.stops.get(address)

    @property
    def used(self) -> list[Range]:
        """The addresses that its caches use."""
        return [part for cache in self.caches.all for part in cache.used]


class PinnedReturn(NamedTuple):
    """What is left of a copy for a thread that sleeps behind a system call in it: the call's
    instruction, which may be begun again, at `begin`, and a stop behind it."""

    begin: int
    at: int
    end: int
    called: Place
    place: Place
    stop: PinnedStop

    def locate(self, address: int) -> Place | None:
        """Where in the program an address of it is."""
        if address == self.begin:
            return self.called
        return self.place if self.at <= address <= self.end else None
