"""Blocks translated by compiled code, many at once: those of modules, while nothing rare is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import (
    AT,
    CODE_SIZE,
    LENGTH,
    PC,
    SLOW,
    START,
    Batch,
    CompiledCode,
    LookupTable,
    Made,
    Reached,
)
from livepro.engines.translate.codecache.landings import Landings
from livepro.engines.translate.codecache.linker import Linker, Pending
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.persist.module import number
from livepro.engines.translate.translator.arrivals import Arrival, Arrivals, FileArrivals
from livepro.engines.translate.translator.backend import Compiler, Emitter
from livepro.engines.translate.translator.changing import ChangingCode
from livepro.engines.translate.translator.emitted import Field, Landing
from livepro.tracee import TracedProcess

Array = npt.NDArray[np.int64]

WORTH = 60
"""Blocks of one module translated in Python before its code is translated by compiled code: to load that
takes about as long. (Measured with 20, 60 and 200: with 60 `ls` takes a tenth less, CPython as long.)"""
_LOOKED_THROUGH = 1500
"""Blocks that are looked through for a module (`_begin`) while one is translated in Python: 0.25 and 400 us,
that is, as long as it takes to load what there is of so many."""
_MARGIN = 1 << 12  # blocks that may be made of one module before they are entered
_AROUND = 3
"""Blocks translated for each place that other processes have come to: what follows it takes its share. (Of
the stops of a second perl 60 % are left with 1, 37 % with 3, 25 % with 10, which takes longer.)"""
_EAGER = 40
"""Blocks translated at a miss in code that may change, besides. (Of javac's 12,200 stops with 10 there are
11,000 with 30 and 10,600 with 80; blocks are 57,800, 64,400 and 73,700, made in 7.1, 6.3 and 5.8 s.)"""
_LOW = 1 << 31


class CompiledBuilder:
    """Has the blocks of one code cache translated by compiled code, and enters what it has made: so many
    `blocks`."""

    def __init__(
        self,
        process: TracedProcess,
        areas: ThreadAreas,
        memory: CacheMemory,
        registry: BlockRegistry,
        linker: Linker,
        landings: Landings,
        pending: Pending,
        emitter: Emitter,
        compiler: Compiler | None,
        arrivals: Arrivals,
        changing: ChangingCode,
    ) -> None:
        self._process = process
        self._areas = areas
        self._memory = memory
        self._registry = registry
        self._linker = linker
        self._landings = landings
        self._pending = pending
        self._emitter = emitter
        self._compiler = compiler
        self._arrivals = arrivals
        self._changing = changing
        self.blocks = 0

    @cached_property
    def _landing(self) -> Landing:
        return self._emitter.landing(0)

    @property
    def lookup(self) -> LookupTable:
        """The lookup table, for compiled code."""
        lookup = self._memory.lookup
        return LookupTable(lookup.table, lookup.tails, lookup.miss, self._landing.otherwise, lookup.enter)

    def translate(self, cache: Cache, pc: int, *, lands: bool, likely: bool, eager: int) -> bool:
        """Translate the block at `pc`, of the module of `cache`, and so many blocks that are likely to
        follow. False if the block is left to the translator in Python: nothing has been done then."""
        compiler, module, registry = self._compiler, cache.module, self._registry
        if compiler is None or registry.cells.free < _MARGIN:
            return False
        if module is None:
            return self._translate_changing(cache, compiler, pc, lands=lands, likely=likely, eager=eager)
        compiled, arrivals = cache.compiled, self._arrivals.of(module)
        if compiled is None:
            met = max(len(cache.blocks) - cache.kept - cache.forked, len(arrivals.all) - cache.follower.seen)
            if self._pays(compiler, met):
                compiled = self._begin(cache, compiler)
        numbers = [arrivals.add(Arrival(pc - module.start, lands))] if eager else []
        if compiled is None or pc in cache.left:
            return False
        self._catch_up(cache, compiled)
        compiled.begin(eager)
        done = self._run(cache, compiled, pc - module.start, lands=lands, likely=likely)
        if done:
            self._heed(cache, compiled, arrivals, numbers, eager)
        return done

    def _pays(self, compiler: Compiler, met: int) -> bool:
        """Whether to have a cache's code translated by compiled code, of which Python has met so many blocks,
        and that can be done."""
        worth = len(self._registry.slots) // _LOOKED_THROUGH + (0 if compiler.at_hand else WORTH)
        return met >= worth and compiler.ready(self._emitter)

    def _translate_changing(
        self, cache: Cache, compiler: Compiler, pc: int, *, lands: bool, likely: bool, eager: int
    ) -> bool:
        """The same of code that may change."""
        changing, compiled = self._changing, cache.compiled
        if compiled is None:
            if not self._pays(compiler, len(cache.blocks)):
                return False
            begun = cache.changing is not None or (compiler.changes and changing.begin(cache, compiler, pc))
            if not begun:
                return False
        if not cache.covers(pc) or not changing.keeps(cache):
            return False
        compiled = compiled or self._begin(cache, compiler)
        self._catch_up(cache, compiled)
        changing.read_anew(cache, pc)
        if pc in self._registry.versions:
            compiled.forget(pc - cache.extent[0], gone=False)  # those are gone for good
        compiled.begin(_EAGER if eager else 0)
        return self._run(cache, compiled, pc - cache.extent[0], lands=lands, likely=likely)

    def _heed(
        self,
        cache: Cache,
        compiled: CompiledCode,
        arrivals: FileArrivals,
        numbers: Iterable[int | None],
        eager: int,
    ) -> None:
        """Translate what other processes have come to after these arrivals, in the same file."""
        module, left = cache.module, cache.left
        assert module is not None
        slots, landings = self._registry.slots, self._memory.lookup.landings
        returns: list[int] = []
        successors: list[int] = []
        start = module.start
        for offset, lands in cache.follower.wanted(arrivals, numbers):
            if offset + start not in (landings if lands else slots) and offset + start not in left:
                (returns if lands else successors).append(offset)
        # (Once there was no room any more, there is none for what may be of use.)
        if (returns or successors) and self._registry.cells.original:
            compiled.begin(eager * _AROUND * (len(returns) + len(successors)), returns[::-1], successors)
            self._run(cache, compiled, -1, lands=False, likely=False)

    def ready(self, eager: int, log: Array) -> list[tuple[Cache, CompiledCode, int]]:
        """The caches whose code is translated by compiled code that can be asked without Python, and where
        (`CompiledCode.stand_by`). (Of landings that were put out of force it does not know.)"""
        every = self._memory.caches.all
        caches = [c for c in every if c.module and c.compiled is not None and not (c.stale or c.disturbed)]
        if self._registry.cells.free < _MARGIN * len(caches):
            return []
        ready, lookup, told = [], None, self._areas.told
        for cache in caches:
            compiled = cache.compiled
            assert compiled is not None
            # (It is asked in every code cache each time: this must be quick where nothing has changed.)
            if _has_seen(cache) and (at := compiled.stands_by(_room(cache))):
                ready.append((cache, compiled, at))
                continue
            if lookup is None:
                lookup = self.lookup
            self._catch_up(cache, compiled)
            ready.append((cache, compiled, compiled.stand_by(_room(cache), eager, lookup, told, log)))
        return ready

    def arrived(self, cache: Cache, compiled: CompiledCode, places: Iterable[Reached], eager: int) -> None:
        """Threads have come to these places, and gone on: see to what had to wait meanwhile."""
        module = cache.module
        assert module is not None
        arrivals = self._arrivals.of(module)
        numbers = [arrivals.add(Arrival(place.offset, place.lands != 0)) for place in places]
        if compiled.prepare(self._process.memory.read):
            self._run(cache, compiled, -1, lands=False, likely=False)
        self._heed(cache, compiled, arrivals, numbers, eager)

    def _run(self, cache: Cache, compiled: CompiledCode, at: int, *, lands: bool, likely: bool) -> bool:
        done, read = False, self._process.memory.read if cache.module else self._changing.read
        while True:
            made = compiled.run(at, self._registry.cells.range[1], _room(cache), lands=lands, likely=likely)
            if made is not None:
                self._enter(cache, compiled, made)
                at, done = -1, True
            if not compiled.prepare(read):
                return done

    def follow(self, cache: Cache, eager: int) -> None:
        """Translate what is likely to follow in the module of `cache`, so many blocks at most. What is left
        to the translator in Python, a hundred times as slow, waits until a thread comes to it: of most such
        blocks none does (`ud2`)."""
        pending, compiled = self._pending, cache.compiled
        if compiled is None:
            return
        start, left = cache.extent[0], cache.left
        mine = []
        for which in (pending.returns, pending.successors):
            mine.append([pc - start for pc in which if cache.covers(pc) and pc not in left])
            which[:] = [pc for pc in which if not cache.covers(pc)]
        if mine[0] or mine[1]:
            self._catch_up(cache, compiled)
            compiled.begin(eager, *mine)
            self._run(cache, compiled, -1, lands=False, likely=False)

    def _begin(self, cache: Cache, compiler: Compiler) -> CompiledCode:
        """Let a cache's code be translated by compiled code from now on."""
        start, end = cache.extent
        if cache.text is None:
            cache.text = compiler.text(start, end - start)
        text, low = cache.changing.latest if cache.changing else cache.text, min(cache.end, end) <= _LOW
        image, checks = np.frombuffer(cache.map, np.uint8), cache.module is None
        compiled: CompiledCode = compiler.module(
            text, cache.base, image, self._emitter, low=low, checks=checks
        )
        registry, base = self._registry, cache.base
        pcs, known = _array(registry.slots), self._memory.lookup.landings
        landed = np.stack((_array(known), _array(known.values())), axis=1)
        here = _within(cache, pcs)
        pcs, slots = pcs[here], _array(registry.slots.values())[here]
        landed = landed[_within(cache, landed[:, 0])] - (start, base)
        fragments = _array(registry.starts)[slots]
        links = cache.record.all_links()
        fields, targets = links[:, 0] - base, links[:, 1] - start
        if cache.persisted is not None:
            fields = np.concatenate((cache.persisted.link_fields.astype(np.int64), fields))
            targets = np.concatenate((cache.persisted.link_targets.astype(np.int64), targets))
        stubs = np.array(list(cache.stubs.items()), np.int64).reshape(-1, 2)
        compiled.take(
            *(pcs - start, fragments - base, fields, targets),
            *(stubs[:, 0] - start, stubs[:, 1] - base, landed),
        )
        cache.compiled = compiled
        self._seen(cache)
        return compiled

    def _seen(self, cache: Cache) -> None:
        record = cache.record
        cache.seen = len(record.links), len(record.landings), len(cache.blocks)

    def _catch_up(self, cache: Cache, compiled: CompiledCode) -> None:
        """Let compiled code know what has been made in Python since."""
        record, in_force = cache.record, self._registry.slots
        links, landings, blocks = cache.seen
        if _has_seen(cache):
            return
        start, base, stubs = cache.extent[0], cache.base, cache.stubs
        starts = self._registry.starts
        # (Of a block there are further fragments, the comparison, and those that are in force no longer.)
        made = (block for block in cache.blocks[blocks:] if block is not None and block.own == block.slot)
        fresh = [b for b in made if in_force.get(b.source.pc) == b.slot and starts[b.slot] == b.start]
        fresh = [b for b in fresh if cache.covers(b.source.pc)]
        new = record.links[links:]
        landed = [(pc - start, at - base) for pc, at, *_ in record.landings[landings:] if cache.covers(pc)]
        compiled.take(
            np.array([block.source.pc - start for block in fresh], np.int64),
            np.array([block.start - base for block in fresh], np.int64),
            np.array([field - base for field, _ in new], np.int64),
            np.array([target - start for _, target in new], np.int64),
            np.array([target - start for _, target in new if target in stubs], np.int64),
            np.array([stubs[target] - base for _, target in new if target in stubs], np.int64),
            np.array(landed, np.int64).reshape(-1, 2),
        )
        self._seen(cache)

    def _enter(self, cache: Cache, compiled: CompiledCode, made: Made) -> None:
        """Enter what compiled code has made, then let it be reached."""
        emitter = self._emitter
        self.enter_blocks(cache, made.rows)
        if (emitter.records or emitter.filter is not None) and len(made.rows):
            self._number(cache, made)
        self.lead_on(cache, made, self.enter_ways(cache, compiled, made))

    def enter_blocks(self, cache: Cache, rows: Array) -> None:
        """Enter blocks that compiled code has made, which count in the next cells."""
        if not len(rows):
            return
        emitter, registry, base, module = self._emitter, self._registry, cache.base, cache.module
        cell = registry.cells.range[1]
        if module is None:
            cells, slots = self._changing.enter(cache, rows)
        else:
            cells = np.arange(cell, cell + len(rows), dtype=np.int64)
            slots = registry.enter_compiled(cache, rows, [module] * len(rows))
        cache.batches.append(Batch(len(cache.blocks), cells, slots, rows))
        cache.starts += (rows[:, START] + base).tolist()
        if emitter.asks or emitter.filter is not None:
            cache.colds += (rows[:, SLOW] + base).tolist()
        cache.blocks += [None] * len(rows)
        self.blocks += registry.cells.range[1] - cell

    def enter_ways(self, cache: Cache, compiled: CompiledCode, made: Made) -> list[list[int]]:
        """Enter what leads to those blocks, then let them be reached. Returns what `lead_on` is to see to in
        other caches."""
        memory, start, base = self._memory, cache.extent[0], cache.base
        memory.bytes += made.size
        cache.record.made(made.fields, made.links)
        if len(made.stubs):
            targets, stubs = (made.stubs[:, 0] + start).tolist(), (made.stubs[:, 1] + base).tolist()
            cache.stubs.update(zip(targets, stubs, strict=True))
            self._linker.exits.update(zip(stubs, targets, strict=True))
        ends = compiled.ends
        cache.hot, cache.cold = base + ends[0], base + ends[1]
        memory.show(cache)
        # (Everything that a thread may meet there is known by now.)
        compiled.publish()
        elsewhere = self._land(cache, compiled, made.landings) if len(made.landings) else []
        if compiled.ends != ends:  # long jumps to other caches
            cache.hot, cache.cold = base + compiled.ends[0], base + compiled.ends[1]
        if cache.module is not None:  # elsewhere it may be other code the next time
            cache.left.update((made.left + start).tolist())
        self._seen(cache)
        return elsewhere

    def lead_on(self, cache: Cache, made: Made, elsewhere: Iterable[Sequence[int]]) -> None:
        """Let branches lead out of a module to what there is, and from others into it, as the displacements
        `elsewhere` do. (That may take room in any cache.)"""
        linker, (start, end) = self._linker, cache.extent
        outside = made.links[made.links[:, 1].astype(np.uint64) >= end - start]
        for field, target in outside.tolist():
            linker.lead_out(cache, field + cache.base, target + start)
        if len(made.rows):
            linker.publish_outside((made.rows[:, PC] + start).tolist())
        for field, at in elsewhere:
            self._memory.patch_at(field, at)

    def _number(self, cache: Cache, made: Made) -> None:
        """Let new fragments record the numbers of their blocks in the event stream."""
        from livepro.engines.stream.blocks import NOWHERE

        recording, text = self._emitter.recording, cache.text
        assert recording is not None
        assert text is not None
        is_block = made.rows[:, LENGTH] > 0
        rows = made.rows[is_block]
        offsets, at, counts, sizes = (rows[:, column].copy() for column in (PC, AT, LENGTH, CODE_SIZE))
        blocks = text.told(at, counts, sizes, accessing=recording.blocks.accessing)
        # (The bytes of code that may change are kept elsewhere.)
        targets = np.where(blocks.targets == NOWHERE, NOWHERE, blocks.targets + offsets - at)
        numbers = np.zeros(len(made.rows), np.int64)
        numbers[is_block] = recording.blocks.put_back(
            blocks._replace(pcs=offsets, targets=targets), cache.extent[0]
        )
        fields = made.fields[made.fields[:, 0] == Field.RECORD, 1]
        number(np.frombuffer(cache.map, np.uint8), fields, numbers)

    def _land(self, cache: Cache, compiled: CompiledCode, landings: Array) -> list[list[int]]:
        """Enter new landings in the lookup table."""
        lookup, code = self._memory.lookup, self._landing
        elsewhere = compiled.land(self.lookup)
        pcs, places = (landings[:, 0] + cache.extent[0]).tolist(), (landings[:, 1] + cache.base).tolist()
        lookup.landings.update(zip(pcs, places, strict=True))
        cache.record.landed(landings, code.target, code.otherwise)
        return elsewhere


def _has_seen(cache: Cache) -> bool:
    """Whether compiled code knows of all that has been made in a cache."""
    record = cache.record
    return cache.seen == (len(record.links), len(record.landings), len(cache.blocks))


def _room(cache: Cache) -> tuple[int, int, int, int]:
    """See `CompiledCode.run`."""
    base = cache.base
    return cache.hot - base, cache.cold - base, cache.hot_end - base, cache.cold_end - base


def _array(numbers: Collection[int]) -> Array:
    return np.fromiter(numbers, np.int64, len(numbers))


def _within(cache: Cache, addresses: Array) -> npt.NDArray[np.bool_]:
    """Which of the program's addresses compiled code translates the code of into a cache."""
    start, end = cache.extent
    return (addresses >= start) & (addresses < end)
