"""The memory of a code cache: the files it lies in, what is written there, and what each address is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.cache import Cache, Caches
from livepro.engines.translate.codecache.fragment import Fragment, Place
from livepro.engines.translate.codecache.lookup import Lookup
from livepro.engines.translate.codecache.stop_reasons import ChunkStop, MissStop, Stop
from livepro.engines.translate.flush.generations import CacheFile, FlushedGeneration, PinnedReturn, Range
from livepro.engines.translate.memory import SharedFile, ThreadAreas
from livepro.engines.translate.translator.backend import Backend, Emitter
from livepro.linux.proc import Mapping


class CacheMemory:
    """The files that one code cache lies in, and all that is written to them.

    `files` are the files, `caches` the parts of them that new fragments are put into. `flushed` is the
    generation of fragments before this one, as long as threads may be in it; `pinned` is what is left of
    others for threads (by tid) that sleep there. `stops` says what each stop of this generation is for.
    `bytes` are those that fragments take. `gadget` and `resume` are the addresses of a system call and of
    what returns from signal handlers lead to (0: none is needed), `refill` those at which blocks are given
    allowances, `entries` those at which entries of a filtered stream are written. `others` are mappings that
    get no cache of their own.
    """

    def __init__(
        self,
        areas: ThreadAreas,
        backend: Backend,
        emitter: Emitter,
        recall: Callable[[Cache, int], Fragment],
    ) -> None:
        self.files: list[CacheFile] = []
        self.caches = Caches()
        self.flushed: FlushedGeneration | None = None
        self.pinned: dict[int, PinnedReturn] = {}
        self.stops: dict[int, Stop] = {}
        self.others: set[Mapping] = set()
        self.bytes = 0
        self.gadget = 0
        self.resume = 0
        self.refill = range(0)
        self.entries = range(0)
        self.lookup = Lookup(areas, self.patch_at, backend.index_shift)
        self._areas = areas
        self._backend = backend
        self._emitter = emitter
        self._recall = recall
        self._link = backend.link
        self._stop = backend.stop
        self._synchronise = backend.synchronise

    def fork_into(self, child: CacheMemory, files: list[SharedFile]) -> None:
        """Let a forked child's memory, which is in copies of the files, hold the same."""
        child.gadget, child.resume, child.refill = self.gadget, self.resume, self.refill
        child.entries = self.entries
        child.stops = self.stops.copy()
        child.files = [mine.fork(file) for mine, file in zip(self.files, files, strict=True)]
        file_of = {mine.file.base: theirs.file for mine, theirs in zip(self.files, child.files, strict=True)}
        child.caches = child._copies_of(self.caches, file_of, child.stops)
        old = self.flushed
        if old is not None:
            stops = old.stops.copy()
            caches = child._copies_of(old.caches, file_of, stops)
            child.flushed = FlushedGeneration(
                caches, stops, old.exits.copy(), old.starts.copy(), old.cells.copy()
            )
        child.pinned = self.pinned.copy()
        child.bytes = self.bytes
        child.lookup = self.lookup.fork(child._areas, child.patch_at)
        child.others = self.others.copy()

    def _copies_of(self, caches: Caches, files: dict[int, SharedFile], stops: dict[int, Stop]) -> Caches:
        """The caches of the process that this one's was forked from, in the child's files (by address)."""
        out = Caches()
        for cache_file in self.files:
            out.know(cache_file.fixed)
        for theirs in caches.all:
            cache = theirs.fork(files[theirs.base])
            cache.recall, cache.stops = self._recall, stops
            out.add(cache)
        return out

    # -- files and caches

    def used(self, cache_file: CacheFile) -> list[tuple[int, int]]:
        """The ranges of a file that hold anything, as (start, end) offsets."""
        base = cache_file.file.base
        flushed = [] if self.flushed is None else self.flushed.caches.all
        pinned = [(w.begin, w.at + len(self._stop)) for w in self.pinned.values()]
        used = [part for cache in (*self.caches.all, *flushed) if cache.base == base for part in cache.used]
        used += [(start, end) for start, end in pinned if base <= start < cache_file.fixed.first]
        return [(start - base, end - base) for start, end in (*used, *cache_file.fixed.used)]

    def add_cache(self, file: SharedFile, module: Mapping | None = None, key: str = "") -> Cache:
        """Begin a cache in a new file. The first file holds the system call gadget, the stop that an
        empty table entry leads to, and what returns from signal handlers lead to."""
        cache_file = CacheFile(file, module)
        self.files.append(cache_file)
        self.caches.know(cache_file.fixed)
        if self.flushed is not None:
            self.flushed.caches.know(cache_file.fixed)
        if len(self.files) == 1:
            self._write_routines(cache_file.fixed)
        cache = Cache(file, module, key)
        self._begin(cache)
        return cache

    def _write_routines(self, fixed: Cache) -> None:
        self.gadget = fixed.first
        self.write(fixed, self.gadget, self._backend.gadget)
        miss = fixed.first + 8
        self.write(fixed, miss, self._stop)
        self.lookup.clear(miss)
        resume = self._emitter.resume()
        if resume:
            self.resume = fixed.hot
            self.write(fixed, self.resume, resume)
            fixed.hot += len(resume)
        refill = self._emitter.refill()
        self.refill = range(fixed.hot, fixed.hot + len(refill))
        self.write(fixed, fixed.hot, refill)
        fixed.hot += len(refill)
        entries = self._emitter.entries
        if entries is not None:
            self.entries = range(fixed.hot, fixed.hot + entries.size)
            self.write(fixed, fixed.hot, entries.code)
            fixed.hot += entries.size
        self.stops = self._fixed_stops()

    def _fixed_stops(self) -> dict[int, Stop]:
        """The stops that are no fragment's."""
        out: dict[int, Stop] = {self.lookup.miss: MissStop()}
        entries = self._emitter.entries
        for stop in () if entries is None else entries.stops:
            at = self.entries.start + stop
            out[at] = ChunkStop(None, at + len(self._stop))
        return out

    def _begin(self, cache: Cache) -> None:
        cache.recall, cache.stops = self._recall, self.stops
        self.caches.add(cache)

    def cache_for(self, pc: int) -> Cache | None:
        """The cache for a fragment of code at `pc`: its module's, if that has one with room."""
        cache = self.caches.of_module(pc)
        if cache is not None:
            if cache.room:
                return cache
            cache.key = ""  # its fragments lead to others elsewhere from now on
        return self.caches.general(pc, layout.REACH)

    def cache_at(self, address: int) -> Cache:
        """The cache in use that holds a target address of livepro's own. Raises KeyError for others."""
        cache = self.caches.at(address)
        if cache is None:
            raise KeyError(hex(address))
        return cache

    @property
    def all_caches(self) -> list[Cache]:
        """The caches in use, and those that are dropped but not given up."""
        return [*self.caches.all, *(() if self.flushed is None else self.flushed.caches.all)]

    def made_at(self, address: int) -> Cache:
        """The cache that holds a fragment, be it dropped but not given up."""
        cache = None if self.flushed is None else self.flushed.cache_at(address)
        cache = cache or self.caches.at(address)
        assert cache is not None
        return cache

    def fixed_near(self, address: int) -> Cache:
        """Where something that outlives generations can be, near an address if there is such a place."""
        files = sorted(self.files, key=lambda cache_file: abs(cache_file.file.base - address))
        near = files[0] if abs(files[0].file.base - address) < layout.REACH else self.files[0]
        return near.fixed

    def fixed_at(self, address: int) -> Cache:
        """The cache of what outlives generations that holds an address."""
        return next(g.fixed for g in self.files if g.fixed.first <= address < g.fixed.end)

    # -- what an address is

    def holds(self, address: int) -> bool:
        """Whether a target address lies in livepro's files."""
        return any(g.file.base <= address < g.file.base + g.file.size for g in self.files)

    def locate(self, address: int) -> Place | None:
        """Where a cache address is in the program, None for an address that is no fragment's."""
        cache = self.caches.at(address)
        place = None if cache is None else cache.locate(address)
        if place is None and self.pinned:
            found = (pinned.locate(address) for pinned in self.pinned.values())
            place = next((p for p in found if p is not None), None)
        if place is None and self.flushed is not None:
            place = self.flushed.locate(address)
        return place

    def stop_at(self, address: int) -> Stop | None:
        """What the breakpoint at a cache address is for, None if it is none of livepro's stops."""
        stop = self.stops.get(address)
        if stop is None and (self.pinned or self.flushed is not None):
            stop = self._former_stop(address)
        if stop is None and self.locate(address) is not None:
            stop = self.stops.get(address)  # a fragment put back, looked into just now
            if stop is None and self.flushed is not None:
                stop = self.flushed.stop_at(address)
        return stop

    def _former_stop(self, address: int) -> Stop | None:
        for pinned in self.pinned.values():
            if pinned.at == address:
                return pinned.stop
        return None if self.flushed is None else self.flushed.stop_at(address)

    # -- writing

    def write(self, cache: Cache, address: int, data: bytes) -> None:
        """Write bytes to a cache."""
        at = address - cache.base
        cache.map[at : at + len(data)] = data
        if self._synchronise is not None:
            self._synchronise(cache.map, at, at + len(data))

    def cold(self, cache: Cache, data: bytes, align: int = 1) -> int:
        """Put bytes that are executed rarely, or not at all, out of the way. Returns where."""
        at = cache.cold = (cache.cold + align - 1) & -align
        self.write(cache, at, data)
        cache.cold = at + len(data)
        self.bytes += len(data)
        return at

    def patch_at(self, field: int, destination: int) -> None:
        """Let the branch whose field is at `field`, in any cache, lead to `destination`."""
        self.patch(self.cache_at(field), field, destination)

    def patch(self, cache: Cache, field: int, destination: int) -> None:
        """Let the branch whose field is at `field` in `cache` lead to `destination`, over a
        long jump if it is far away."""
        if not self._link(cache.map, field - cache.base, destination - field):
            hop = cache.ways.get(destination) or self._hop(cache, destination)
            if not hop:
                return
            self._link(cache.map, field - cache.base, hop - field)
        if self._synchronise is not None:
            self._synchronise(cache.map, field - cache.base, field - cache.base + 4)

    def _hop(self, cache: Cache, destination: int) -> int:
        """A long jump in `cache` that leads to `destination`; 0 without room for one: the branch that would
        lead there leads to a stop for as long as it is."""
        if cache.cold >= cache.cold_end and not cache.starts:
            return 0
        there = self.caches.at(destination)
        hop = self.cold(cache, self._backend.jump_far_away(self._arrival(destination)), 8)
        if there is not None and there.lasting:
            # (Half of all landings lead on to where lookups that miss stop.)
            cache.ways[destination] = hop
        return hop

    def _arrival(self, destination: int) -> int:
        """Where a far jump to `destination` must lead."""
        if not self._backend.arrival:
            return destination
        cache = self.cache_at(destination)
        at = cache.ways.get(-destination)
        if at is None:
            at = self.cold(cache, self._backend.arrival + self._backend.jump, 4)
            self.patch(cache, cache.cold - 4, destination)
            if cache.lasting:
                cache.ways[-destination] = at
        return at

    def show(self, cache: Cache) -> None:
        """Let the processors see what has been added to a cache."""
        if self._synchronise is not None:
            cache.show(self._synchronise)

    def stop_entries(self, start: int, stop: Stop) -> None:
        """Put a stop over the first instruction of the fragment at `start`."""
        self.write(self.cache_at(start), start, self._stop)
        self.stops[start] = stop

    def let_in(self, block: Fragment) -> None:
        """Take the stop off the first instruction of a fragment."""
        code = bytes(block.details.code[: len(self._stop)])
        self.write(self.cache_at(block.start), block.start, code)

    # -- a flush

    def stop_all(self, starts: Iterable[int]) -> None:
        """Put a stop at the start of each fragment. Threads run there: each must see the whole of it, or
        nothing."""
        unit = np.dtype(f"<u{len(self._stop)}")
        stop = int.from_bytes(self._stop, "little")
        addresses = np.array(sorted(starts), np.int64)
        for cache in self.caches.all:
            first, end = np.searchsorted(addresses, (cache.first, cache.end))
            if first < end:
                image = np.frombuffer(cache.map, unit)
                image[(addresses[first:end] - cache.base) // unit.itemsize] = stop
                if self._synchronise is not None:
                    for start, behind in cache.used:
                        self._synchronise(cache.map, start - cache.base, behind - cache.base)

    def flush(self, flushed: FlushedGeneration) -> None:
        """Begin a new generation: `flushed` is what threads may still be in. New fragments come to the
        largest part of each file that nothing else is in."""
        self.flushed = flushed
        self.bytes = 0
        self.stops = self._fixed_stops()
        taken = self._taken()
        for cache in self.caches.all:
            if cache.stale:
                for cache_file in self.files:
                    if cache_file.file is cache.file:
                        cache_file.module = None
        self.caches = Caches()
        for cache_file in self.files:
            self.caches.know(cache_file.fixed)
            if cache_file.module is not None:
                self.others.add(cache_file.module)
            part = cache_file.largest_gap(taken)
            if part is not None:
                self._begin(Cache(cache_file.file, cache_file.module, "", part))

    def release(self, pinned: dict[int, PinnedReturn]) -> None:
        """Give the memory of dropped fragments back to the kernel, but what is `pinned` for."""
        self.flushed, self.pinned = None, pinned
        taken = [*self._taken(), *(part for cache in self.caches.all for part in cache.used)]
        for cache_file in self.files:
            cache_file.release(taken)

    def _taken(self) -> list[Range]:
        """Addresses that new fragments must leave alone."""
        size = len(self._stop) + 1
        pinned = [(pinned.begin, pinned.at + size) for pinned in self.pinned.values()]
        return pinned if self.flushed is None else [*self.flushed.used, *pinned]
