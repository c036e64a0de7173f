"""The code caches of one address space: the files they are in, and the branches between copies there."""

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.backend import Backend, Emitter
from livepro.engines.translate.cache import Block, Cache, Caches, Stop
from livepro.engines.translate.generations import Dropped, Ground, Waited
from livepro.engines.translate.lookup import Lookup
from livepro.engines.translate.memory import SharedFile, ThreadAreas
from livepro.linux.proc import Mapping


class CodeFiles:
    """The caches of one address space.

    `grounds` are the files, `caches` what copies are put into. `dropped` is the generation of copies
    before this one, as long as threads may be in it, `waited` what is left of others for threads (by
    tid) that sleep there. `bytes` are those that copies take. `gadget` and `resume` are the addresses
    of a system call and of what returns from signal handlers lead to (0: none is needed), `refill` those at
    which blocks are given allowances.
    """

    def __init__(self, memory: ThreadAreas, backend: Backend, emitter: Emitter) -> None:
        self.memory = memory
        self.backend = backend
        self.emitter = emitter
        self.grounds: list[Ground] = []
        self.caches = Caches()
        self.dropped: Dropped | None = None
        self.waited: dict[int, Waited] = {}
        self.bytes = 0
        self.gadget = 0
        self.resume = 0
        self.refill = range(0)
        self.lookup = Lookup(memory, self._patch_at, backend.index_shift)
        self._link = backend.link
        self._stop = backend.stop
        self._synchronise = backend.synchronise
        self._stops: dict[int, Stop] = {}

    def recall(self, cache: Cache, row: int) -> Block:
        """Look into a copy that was put back whole."""
        raise NotImplementedError

    def used(self, ground: Ground) -> list[tuple[int, int]]:
        """The ranges of a file that hold anything, as (start, end) offsets."""
        base = ground.file.base
        dropped = [] if self.dropped is None else self.dropped.caches.all
        waited = [(w.begin, w.at + len(self._stop)) for w in self.waited.values()]
        used = [part for cache in (*self.caches.all, *dropped) if cache.base == base for part in cache.used]
        used += [(start, end) for start, end in waited if base <= start < ground.fixed.first]
        return [(start - base, end - base) for start, end in (*used, *ground.fixed.used)]

    def add_cache(self, file: SharedFile, module: Mapping | None = None, key: str = "") -> Cache:
        """Begin a cache in a new file. The first file holds the system call gadget, the stop that an
        empty table entry leads to, and what returns from signal handlers lead to."""
        ground = Ground(file, module)
        self.grounds.append(ground)
        self.caches.know(ground.fixed)
        if self.dropped is not None:
            self.dropped.caches.know(ground.fixed)
        if len(self.grounds) == 1:
            fixed = ground.fixed
            self.gadget = fixed.first
            self._write(fixed, self.gadget, self.backend.gadget)
            miss = fixed.first + 8
            self._write(fixed, miss, self._stop)
            self._stops[miss] = Stop("miss")
            self.lookup.clear(miss)
            resume = self.emitter.resume()
            if resume:
                self.resume = fixed.hot
                self._write(fixed, self.resume, resume)
                fixed.hot += len(resume)
            refill = self.emitter.refill()
            self.refill = range(fixed.hot, fixed.hot + len(refill))
            self._write(fixed, fixed.hot, refill)
            fixed.hot += len(refill)
        cache = Cache(file, module, key)
        self._begin(cache)
        return cache

    def _begin(self, cache: Cache) -> None:
        cache.recall, cache.stops = self.recall, self._stops
        self.caches.add(cache)

    def cache_for(self, pc: int) -> Cache | None:
        """The cache for a copy of code at `pc`: its module's, if that has one with room."""
        cache = self.caches.of_module(pc)
        if cache is not None:
            if cache.room:
                return cache
            cache.key = ""  # its copies lead to others elsewhere from now on
        return self.caches.general(pc, layout.REACH)

    def _write(self, cache: Cache, address: int, data: bytes) -> None:
        at = address - cache.base
        cache.map[at : at + len(data)] = data
        if self._synchronise is not None:
            self._synchronise(cache.map, at, at + len(data))

    def cache_at(self, address: int) -> Cache:
        """The cache in use that holds a target address of livepro's own. Raises KeyError for others."""
        cache = self.caches.at(address)
        if cache is None:
            raise KeyError(hex(address))
        return cache

    def holds(self, address: int) -> bool:
        """Whether a target address lies in livepro's files."""
        return any(g.file.base <= address < g.file.base + g.file.size for g in self.grounds)

    # -- changing what is there

    def _cold(self, cache: Cache, data: bytes, align: int = 1) -> int:
        """Put bytes that are executed rarely, or not at all, out of the way."""
        at = cache.cold = (cache.cold + align - 1) & -align
        self._write(cache, at, data)
        cache.cold = at + len(data)
        self.bytes += len(data)
        return at

    def _patch_at(self, field: int, destination: int) -> None:
        self._patch(self.cache_at(field), field, destination)

    def _patch(self, cache: Cache, field: int, destination: int) -> None:
        """Let the branch whose field is at `field` in `cache` lead to `destination`, over a
        long jump if it is far away."""
        if not self._link(cache.map, field - cache.base, destination - field):
            if cache.cold >= cache.cold_end and not cache.starts:
                return  # what outlives the rest goes over a stop then
            hop = self._cold(cache, self.backend.jump_far_away(self._arrival(destination)), 8)
            self._link(cache.map, field - cache.base, hop - field)
        if self._synchronise is not None:
            self._synchronise(cache.map, field - cache.base, field - cache.base + 4)

    def _arrival(self, destination: int) -> int:
        """Where a far jump to `destination` must lead."""
        if not self.backend.arrival:
            return destination
        cache = self.cache_at(destination)
        at = self._cold(cache, self.backend.arrival + self.backend.jump, 4)
        self._patch(cache, cache.cold - 4, destination)
        return at

    def _show(self, cache: Cache) -> None:
        """Let the processors see what has been added to a cache."""
        if self._synchronise is not None:
            cache.show(self._synchronise)
