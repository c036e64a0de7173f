"""Where a region of interest begins and ends in translated code: copies that stop whoever enters them."""

from __future__ import annotations

from abc import abstractmethod

from livepro.engines.region import RegionWatch
from livepro.engines.translate.backend import Backend, Emitter, Reader
from livepro.engines.translate.cache import Cache, Stop
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.text import ProgramText
from livepro.engines.translate.translations import Translations
from livepro.tracee import TracedProcess


class ArmedTranslations(Translations):
    """Translations of a process's code, some of which have a stop in place of their first instruction."""

    def __init__(
        self, process: TracedProcess, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter
    ) -> None:
        super().__init__(memory, backend, reader, emitter)
        self.process = process
        self.text = ProgramText(process, backend, reader)
        self._covered: dict[int, bytes] = {}

    @property
    def region(self) -> RegionWatch | None:
        """The region that is kept to here, None if all counts."""
        return self.text.region

    @region.setter
    def region(self, region: RegionWatch | None) -> None:
        self.text.region = region

    @abstractmethod
    def forget(self, pc: int) -> None:
        """Make the block at `pc`, if it is translated, stop whoever enters it."""

    def arm(self, pc: int) -> None:
        """Have whoever enters the block at `pc`, if it is translated, stop before its first instruction."""
        slot = self.slots.get(pc)
        if slot is None:
            return
        if self.unrolled.of(slot):
            self._publish(pc)  # who is in a further copy comes back to the first
        start = self.starts[slot]
        cache = self.cache_at(start)
        at = start - cache.base
        self._covered.setdefault(start, bytes(cache.map[at : at + len(self._stop)]))
        self._write(cache, start, self._stop)
        self._stops[start] = Stop("region", self.block(slot), pc)

    def disarm(self, start: int) -> None:
        """Let the copy at `start` be entered again. The stop stays known: another thread may have run
        into it before, and be heard of after."""
        covered = self._covered.pop(start, None)
        if covered is not None:
            self._write(self.cache_at(start), start, covered)

    def keep_apart(self, cache: Cache) -> None:
        """Let what has been put back into a module's cache keep to the region's places."""
        module = cache.module
        places = self.region.places(self.process, module) if self.region is not None else ()
        for place in places:
            assert module is not None
            cache.key = ""  # what is cut here is whole in other runs
            if cache.unit is not None:
                here = place - module.start
                for pc in cache.unit.overlapping(here, here + 1):
                    if pc != here:
                        self.forget(pc + module.start)
            if self.region is not None and self.region.armed(self.process, place):
                self.arm(place)
