"""Stops at new code answered by compiled code alone; what it made for many is entered afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import Answers, CompiledCode, Reached
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.translator.backend import Compiler, Emitter
from livepro.engines.translate.translator.compiled import CompiledBuilder


class Answered(NamedTuple):
    """So many stops have been answered, of which so many at indirect branches; `heard` is the next one (tid
    and status), if it is something else."""

    stops: int
    missed: int
    heard: tuple[int, int] | None


class NewCode:
    """Answers the stops of one code cache's threads that have come to new code.

    What compiled code makes for them threads may run into at once; nobody else knows of it before
    `answer` returns.
    """

    def __init__(
        self,
        memory: CacheMemory,
        registry: BlockRegistry,
        emitter: Emitter,
        builder: CompiledBuilder,
        compiler: Compiler | None,
        follow: Callable[[Cache, int], None],
    ) -> None:
        self._memory = memory
        self._registry = registry
        self._builder = builder
        self._compiler = compiler
        self._follow = follow
        self._plain = not (emitter.records or emitter.asks or emitter.filter is not None)
        self._answers: Answers | None = None
        self._due: list[tuple[Cache, CompiledCode, list[Reached]]] = []

    @property
    def possible(self) -> bool:
        """Whether there is compiled code, and nothing that it does not know of."""
        compiler, memory = self._compiler, self._memory
        return (
            self._plain
            and compiler is not None
            and compiler.at_hand
            and memory.flushed is None
            and not memory.refill
        )

    def serves(self, pc: int) -> bool:
        """Whether the block at `pc` is not left to Python anyway."""
        cache = self._memory.caches.of_module(pc)
        return cache is not None and cache.compiled is not None and pc not in cache.left

    def answer(self, tids: Sequence[int], eager: int, first: tuple[int, int]) -> Answered:
        """Wait for stops after the `first` one (tid and status; 0: there is none), and answer those of the
        threads `tids` that have come to new code, which is translated with so many likely successors each,
        as long as they come one soon after the other. (If there is none, the first one is heard.)"""
        if self._answers is None:
            assert self._compiler is not None
            self._answers = self._compiler.answers()
        answers = self._answers
        ready = self._builder.ready(eager, answers.log)
        if not ready:
            return Answered(0, 0, first if first[0] else None)
        modules = [
            (cache.first, cache.end, module.start, module.end, at)
            for cache, _, at in ready
            if (module := cache.module) is not None
        ]
        cell = self._registry.cells.range[1]
        reached, heard = answers.answer(tids, modules, self._memory.lookup.miss, cell, first)
        if reached:
            self._enter([(cache, compiled) for cache, compiled, _ in ready], reached)
        return Answered(len(reached), sum(place.lands for place in reached), heard)

    def _enter(self, modules: Sequence[tuple[Cache, CompiledCode]], reached: Sequence[Reached]) -> None:
        """Enter what was made, in the order in which it was: fragments, which threads run already, first."""
        builder = self._builder
        made = {n: modules[n][1].made() for n in dict.fromkeys(place.module for place in reached)}
        last, first, end = reached[0].module, reached[0].first, reached[0].first
        for place in reached:
            if place.module != last:
                builder.enter_blocks(modules[last][0], made[last].rows[first:end])
                last, first = place.module, place.first
            end = place.end
        builder.enter_blocks(modules[last][0], made[last].rows[first:end])
        elsewhere = {n: builder.enter_ways(*modules[n], all_made) for n, all_made in made.items()}
        for n, all_made in made.items():
            builder.lead_on(modules[n][0], all_made, elsewhere[n])
            self._due.append((*modules[n], [place for place in reached if place.module == n]))

    def see_to_the_rest(self, eager: int) -> None:
        """Translate what had to wait meanwhile, or may be come to next. Raises OSError where the program
        cannot be read."""
        due, self._due = self._due, []
        for cache, compiled, places in due:
            if cache.compiled is compiled:
                self._builder.arrived(cache, compiled, places, eager)
                self._follow(cache, eager)
