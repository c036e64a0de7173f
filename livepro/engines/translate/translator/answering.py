"""Stops at new code answered by compiled code alone; what it made for many is entered afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import (
    SLOW,
    START,
    Answers,
    CompiledCode,
    Reached,
    Standing,
)
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.codecache.stop_reasons import Stop
from livepro.engines.translate.translator.backend import Compiler, Emitter
from livepro.engines.translate.translator.compiled import CompiledBuilder


class Answered(NamedTuple):
    """So many stops have been answered of threads in each code cache, of which so many at indirect branches;
    `heard` is the next one (tid and status), if it is something else."""

    stops: list[int]
    missed: int
    heard: tuple[int, int] | None


class NewCode:
    """Knows of the new code in one code cache that compiled code makes for threads at their stops.

    Threads may run into that at once; nobody else knows of it before `enter` returns.
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
        self._plain = not (emitter.records or emitter.filter is not None)
        self._ready: list[tuple[Cache, CompiledCode]] = []
        self._due: list[tuple[Cache, CompiledCode, list[Reached]]] = []

    @property
    def possible(self) -> bool:
        """Whether there is compiled code, and nothing that it does not know of."""
        compiler, memory = self._compiler, self._memory
        if compiler is None or not compiler.answering:
            return False
        return self._plain and compiler.at_hand and memory.flushed is None

    def serves(self, pc: int) -> bool:
        """Whether the block at `pc` is not left to Python anyway."""
        cache = self._memory.caches.of_module(pc)
        return cache is not None and cache.compiled is not None and pc not in cache.left

    def answers(self) -> Answers:
        """What has stops answered, where that is possible."""
        assert self._compiler is not None
        answers: Answers = self._compiler.answers()
        return answers

    def stand_by(self, eager: int, answers: Answers) -> Standing:
        """Be ready for threads that come to new code; so many likely successors of it are translated, too."""
        ready = self._builder.ready(eager, answers.log)
        self._ready = [(cache, compiled) for cache, compiled, _ in ready]
        modules = [
            (cache.first, cache.end, module.start, module.end, at)
            for cache, _, at in ready
            if (module := cache.module) is not None
        ]
        return Standing(modules, self._memory.lookup.miss, self._registry.cells.range[1])

    def enter(self, reached: Sequence[Reached]) -> None:
        """Enter what was made since, for threads that have come to these places (numbers of modules as in
        `Standing`), in the order in which it was: fragments, which threads run already, first."""
        builder, modules = self._builder, self._ready
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

    def exit(self, address: int) -> int | None:
        """The program's address that a stub which was made last leads to, whether it has been entered or not;
        None for all else. (Threads may have run into it when an error comes in between.)"""
        for cache, compiled in self._ready:
            module = cache.module
            if module is not None and cache.first <= address < cache.end:
                for target, stub in compiled.latest[1].tolist():
                    if cache.base + stub == address:
                        return int(target) + module.start
        return None

    def fragment(self, address: int) -> Fragment | None:
        """The fragment that was made last, and has an address or is followed by it out of the way, whether it
        has been entered or not; None for all else."""
        for cache, compiled in self._ready:
            if cache.first <= address < cache.end:
                rows, offset = compiled.latest[0], address - cache.base
                for column in (START, SLOW):
                    before = rows[(rows[:, column] > 0) & (rows[:, column] <= offset)]
                    if len(before):
                        block = self._registry.unentered(cache, before[np.argmax(before[:, column])])
                        if address - block.start < block.size or block.is_cold(address):
                            return block
        return None

    def stop(self, address: int) -> Stop | None:
        """What a stop in such a fragment is for."""
        block = self.fragment(address)
        return None if block is None else self._registry.stops_in(block).get(address)

    def see_to_the_rest(self, eager: int) -> None:
        """Translate what had to wait meanwhile, or may be come to next. Raises OSError where the program
        cannot be read."""
        due, self._due = self._due, []
        for cache, compiled, places in due:
            if cache.compiled is compiled:
                self._builder.arrived(cache, compiled, places, eager)
                self._follow(cache, eager)


class StopAnswers:
    """Answers the stops of threads that have come to new code, in several code caches at once."""

    def __init__(self) -> None:
        self._answers: Answers | None = None

    def answer(
        self, codes: Sequence[NewCode], tids: Sequence[tuple[int, int]], eager: int, first: tuple[int, int]
    ) -> Answered:
        """Wait for stops after the `first` one (tid and status; 0: there is none), and answer those of the
        threads `tids` (each with the number of its code cache among `codes`) that have come to new code,
        which is translated with so many likely successors each, as long as they come one soon after the
        other. (If nothing stands by, the first one is heard.)"""
        if self._answers is None:
            self._answers = codes[0].answers()
        standing = [code.stand_by(eager, self._answers) for code in codes]
        if not any(each.modules for each in standing):
            return Answered([], 0, first if first[0] else None)
        reached, heard = self._answers.answer(tids, standing, first)
        for code, places in zip(codes, reached, strict=True):
            if places:
                code.enter(places)
        missed = sum(place.lands for places in reached for place in places)
        return Answered([len(places) for places in reached], missed, heard)
