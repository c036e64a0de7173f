"""Fragments of code that changes: they are put out of force, and later ones take their place.

Fall-throughs, landings and links lead to a fragment for as long as there is its generation. A thread that
enters one which is in force no longer stops, until the program's address has another fragment; from then on
the old one leads there.
"""

from __future__ import annotations

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.landings import Landings
from livepro.engines.translate.codecache.linker import Linker
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.codecache.stop_reasons import SupersededStop
from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.engines.translate.coherence.trust import Trust
from livepro.tracee import TracedProcess


class Invalidator:
    """Puts single fragments of one code cache out of force, and back in force."""

    def __init__(
        self,
        memory: CacheMemory,
        registry: BlockRegistry,
        linker: Linker,
        landings: Landings,
        trust: Trust,
        generated: GeneratedCode,
        process: TracedProcess,
    ) -> None:
        self._process = process
        self._memory = memory
        self._registry = registry
        self._linker = linker
        self._landings = landings
        self._trust = trust
        self._generated = generated

    def drop(self, start: int, end: int) -> None:
        """Forget the blocks whose code overlaps [start, end): it is about to be something else."""
        for cache in self._memory.caches.all:
            module = cache.module
            if module is None:
                within = cache.blocks
            elif module.start < end and start < module.end:
                # What it holds from now on is not what its file says.
                cache.stale, cache.key = True, ""
                within = cache.blocks[cache.kept :]
                if cache.persisted is not None:
                    for pc in cache.persisted.overlapping(start - module.start, end - module.start):
                        self.forget(pc + module.start)
            else:
                continue
            for pc in cache.made_within(start, end):
                self.forget(pc)
            for block in within:
                if block is not None and block.source.pc < end and start < block.source.end:
                    self.forget(block.source.pc)

    def forget(self, pc: int) -> None:
        """Have a thread that enters the fragment of `pc`, if there is one in force, stop there."""
        registry = self._registry
        slot = registry.slots.pop(pc, None)
        if slot is None:
            return
        self._landings.withdraw(pc)
        cache = self._memory.cache_at(registry.starts[slot])
        cache.forget_compiled(pc)
        # (Of code that may change a thread may come back to earlier fragments.)
        block = registry.known(slot) if cache.module is not None else registry.block(slot)
        for start in (registry.starts[slot], *registry.further_starts(slot)):
            self._trust.leave_alone(start)
            self._memory.stop_entries(start, SupersededStop(pc))
        if block is not None and block.details.skip is not None:
            self._linker.supersede(block)

    def revive(self, pc: int) -> bool:
        """Put an earlier fragment of `pc` back in force, made from the bytes that are there again; False if
        there is none, or they cannot be executed."""
        registry = self._registry
        block = self._version(pc)
        if block is None or self._generated.labels.get(block.slot) != self._generated.label(pc):
            return False
        if block.details.skip is not None:
            self._linker.reinstate(block)
        self._memory.let_in(block)
        self._trust.revive(block.start)
        registry.slots[pc] = block.slot
        self._memory.cache_at(block.start).know(pc, block.start)
        self._linker.publish(pc)
        return True

    def _version(self, pc: int) -> Fragment | None:
        """The earlier fragment of what is at `pc` now."""
        versions = self._registry.versions.get(pc)
        if versions is None:
            return None
        mapping = self._process.space.find(pc)
        if mapping is None or not mapping.executable:
            return None
        sizes = {len(code) for code in versions}  # few, where there may be many versions
        there = self._process.memory.read(pc, min(max(sizes), mapping.end - pc))
        return next((versions[there[:size]] for size in sizes if there[:size] in versions), None)
