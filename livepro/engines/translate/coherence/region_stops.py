"""Where a region of interest begins and ends: stops over the first instruction of fragments."""

from __future__ import annotations

from collections.abc import Callable

from livepro.engines.region import RegionWatch
from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.linker import Linker
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.codecache.stop_reasons import RegionStop
from livepro.engines.translate.coherence.trust import Trust
from livepro.engines.translate.translator.backend import Backend
from livepro.tracee import TracedProcess


class RegionStops:
    """Keeps the stops of a `region` (None: all counts) in the fragments of one code cache; `forget` puts the
    fragment of an address out of force."""

    def __init__(
        self,
        process: TracedProcess,
        memory: CacheMemory,
        registry: BlockRegistry,
        linker: Linker,
        trust: Trust,
        backend: Backend,
        region: RegionWatch | None,
        forget: Callable[[int], None],
    ) -> None:
        self.region = region
        self._process = process
        self._memory = memory
        self._registry = registry
        self._linker = linker
        self._trust = trust
        self._stop = backend.stop
        self._forget = forget
        self._covered: dict[int, bytes] = {}

    def fork_into(self, child: RegionStops) -> None:
        """Let a forked child's stops be the same."""
        child._covered = self._covered.copy()

    def armed(self, pc: int) -> bool:
        """Whether threads that come to `pc` are to be seen."""
        return self.region is not None and self.region.armed(self._process, pc)

    def covers(self, start: int) -> bool:
        """Whether there is a stop over the first instruction of the fragment at `start`."""
        return start in self._covered

    def arm(self, pc: int) -> None:
        """Have a thread that enters the fragment of `pc`, if there is one, stop before its first
        instruction."""
        registry, memory = self._registry, self._memory
        slot = registry.slots.get(pc)
        if slot is None:
            return
        start = registry.starts[slot]
        self._trust.leave_alone(start)
        if registry.unrolled.of(slot):
            self._linker.publish(pc)  # a thread in a further fragment comes back to the first
        cache = memory.cache_at(start)
        at = start - cache.base
        self._covered.setdefault(start, bytes(cache.map[at : at + len(self._stop)]))
        memory.stop_entries(start, RegionStop(registry.block(slot), pc))

    def disarm(self, start: int) -> None:
        """Let the fragment at `start` be entered again. The stop stays known: another thread may have run
        into it before, and be heard of after."""
        covered = self._covered.pop(start, None)
        if covered is not None:
            self._memory.write(self._memory.cache_at(start), start, covered)

    def keep_apart(self, cache: Cache) -> None:
        """Let what has been put back into a module's cache keep to the region's places."""
        module = cache.module
        places = self.region.places(self._process, module) if self.region is not None else ()
        for place in places:
            assert module is not None
            cache.key = ""  # what is cut here is whole in other runs
            if cache.persisted is not None:
                here = place - module.start
                for pc in cache.persisted.overlapping(here, here + 1):
                    if pc != here:
                        self._forget(pc + module.start)
            if self.armed(place):
                self.arm(place)

    def flush(self) -> None:
        """No fragment has a stop any more."""
        self._covered = {}
