"""All copies of an address space dropped, and room for new ones made of what they took."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from livepro.engines.recording import located
from livepro.engines.translate import layout
from livepro.engines.translate.armed import ArmedTranslations
from livepro.engines.translate.backend import Backend, Emitter, Reader
from livepro.engines.translate.cache import Block, Cache, Caches, Stop
from livepro.engines.translate.counters import HALF, HALVES, Cells
from livepro.engines.translate.emitted import Emitted
from livepro.engines.translate.generated import GeneratedCode
from livepro.engines.translate.generations import Dropped, Former, Range, Waited
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.source import SourceBlock
from livepro.tracee import TracedProcess

CACHE_SIZE = 160_000_000
"""Bytes of copies for one process unless another limit is set."""

_MARGIN = 1 << 12  # cells left for one translation and what has to come with it


class RenewedTranslations(ArmedTranslations):
    """Translations of which there can be as much as there is room for: then all are dropped (`renew`),
    and when nobody is in them any more their room is free (`give_back`).

    `limits` are the bytes of copies, and the blocks, from which on there is no more room."""

    generated: GeneratedCode

    def __init__(
        self, process: TracedProcess, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter
    ) -> None:
        super().__init__(process, memory, backend, reader, emitter)
        self.limits = (CACHE_SIZE, HALF - _MARGIN)
        self.renewals = 0
        self.translated = 0
        self.given_back = 0
        self.looked = 0.0
        """When it was last looked at whether threads have left dropped copies."""

    def limit(self, size: int | None) -> None:
        """Have copies take about `size` bytes at most."""
        self.limits = (size or CACHE_SIZE, HALF - _MARGIN)

    def has_room_for(self, blocks: int, size: int) -> bool:
        """Whether so many blocks and bytes leave half of what there is in all."""
        bytes_, cells = self.limits
        return (self.bytes + size) * 2 <= bytes_ and (len(self.cells) + blocks) * 2 <= cells

    @property
    def put_back(self) -> int:
        """Blocks whose copies were put back from earlier runs."""
        return sum(len(restored.unit) for restored in self._restored)

    @property
    def full(self) -> bool:
        """Whether there is no room left."""
        return self.bytes >= self.limits[0] or len(self.cells) >= self.limits[1]

    @property
    def half_full(self) -> bool:
        """Whether half of the room is taken."""
        return self.bytes * 2 >= self.limits[0] or len(self.cells) * 2 >= self.limits[1]

    # -- dropping

    def renew(self) -> None:
        """Drop all copies and begin anew. Threads may be in the old ones, and may go on there up to the
        end of their blocks. None may be left in those that were dropped before."""
        assert self.dropped is None
        with self.moving():
            starts = {self.starts[slot]: pc for pc, slot in self.slots.items()}
            self.lookup.reset()
            self._stop_all(starts)
            self._remember()
            self.dropped = Dropped(self.caches, self._stops, self.exits, starts, self.cells)
            self.given_back += self.bytes
            self.translated += len(self.cells)
            self.cells = Cells(HALVES[self.cells.first == HALVES[0]])
            self.bytes = 0
            self.slots, self._links, self._live = {}, {}, {}
            self._reserved, self._versions, self._covered = {}, {}, {}
            miss = self.lookup.miss
            self._stops = {miss: Stop("miss")}
            self._take_parts()
            self.exits = {stub: pc for ground in self.grounds for pc, stub in ground.fixed.stubs.items()}
            self.text.forget()
            self.reader.trim()
            self.generated.begin_anew()
            self.renewals += 1

    def _stop_all(self, starts: Iterable[int]) -> None:
        """Put a stop at the start of each copy. Threads run there: each must see the whole of it, or
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

    def _remember(self) -> None:
        """Let blocks that will be translated again have the slots that they had."""
        further = set(self.unrolled.pairs()[0].tolist())
        for slot in self.cells.slots().tolist():
            block = self._blocks[slot]
            if block is not None and slot not in further:
                pc, code, _ = self.parts(slot)
                self._known[pc, code, self._maker(slot, pc)] = slot
        for cache in self.caches.all:
            if cache.unit is not None:
                assert cache.module is not None
                pcs, codes, _, _ = cache.unit.rows(np.arange(cache.kept))
                start, slots = cache.module.start, (cache.unit.counted + cache.first_slot).tolist()
                for slot, pc, code in zip(slots, pcs, codes, strict=True):
                    self._known[pc + start, code, self._maker(slot, pc + start)] = slot

    def _maker(self, slot: int, pc: int) -> object:
        """What else tells the block of a slot from others that are at `pc` at another time."""
        return (*located(pc, self.mappings[slot]), self.generated.labels.get(slot))

    def _take_parts(self) -> None:
        """Caches for new copies: of each file, the largest part that nothing of the old ones is in."""
        taken = self._taken()
        for cache in self.caches.all:
            if cache.stale:
                for ground in self.grounds:
                    if ground.file is cache.file:
                        ground.module = None
        self.caches = Caches()
        for ground in self.grounds:
            self.caches.know(ground.fixed)
            if ground.module is not None:
                self.others.add(ground.module)
            part = ground.largest_gap(taken)
            if part is not None:
                self._begin(Cache(ground.file, ground.module, "", part))

    def _taken(self) -> list[Range]:
        """Addresses that new copies must leave alone."""
        size = len(self._stop) + 1
        waited = [(waited.begin, waited.at + size) for waited in self.waited.values()]
        return waited if self.dropped is None else [*self.dropped.used, *waited]

    # -- what threads are waited for

    def wait_behind(self, address: int, advance: int) -> Waited | None:
        """What will be left of dropped copies for a thread that sleeps at `address`, where there is a stop
        from now on; `advance`: how far that takes the program counter. None where nobody can sleep."""
        assert self.dropped is not None
        place = self.dropped.locate(address)
        cache = self.dropped.cache_at(address)
        begin = address - len(self.backend.system_call)
        called = self.dropped.locate(begin)
        if place is None or cache is None or called is None or not place.behind_syscall:
            return None
        # Whoever comes back to it must be expected, whatever becomes of the attempt to give back the rest.
        stop = Stop("waited", place.block, place.pc, place.index, address, place.counted)
        self.dropped.stops[address] = stop
        self._write(cache, address, self._stop)
        return Waited(begin, address, address + advance, called, place, stop)

    def give_back(self, waited: dict[int, Waited]) -> None:
        """No thread is in dropped copies any more, but those that are `waited` for; their counters have
        been taken down."""
        dropped = self.dropped
        assert dropped is not None
        self.dropped, self.waited = None, waited
        for slot in dropped.cells.slots().tolist():
            block = self._blocks[slot]
            if isinstance(block, Block) and self.cells.of(slot) is None:
                self._blocks[slot] = Former(*self.parts(slot))
        taken = [*self._taken(), *(part for cache in self.caches.all for part in cache.used)]
        for ground in self.grounds:
            ground.release(taken)

    # -- blocks without a copy

    def uncopied(self, pc: int) -> Block | None:
        """The block at `pc`, to be counted though it has no copy; None where there is nothing to execute."""
        block = self.find(pc)
        if block is not None:
            return block
        mapping = self.process.space.find(pc)
        if mapping is None or not mapping.readable:
            return None  # as the vsyscall page
        self.text.look_again()
        self.generated.look_again()
        source = self.text.decode(pc)
        if source is None:
            return None
        slot = self._numbered(source)
        if slot == len(self._blocks):
            self.starts.append(0)
            self.mappings.append(mapping)
            if self.cells.original:
                self.cells.take(slot)
            self._blocks.append(Former(source.pc, source.code, source.steps()))
        return Block(source, slot, 0, Emitted())

    def _numbered(self, source: SourceBlock) -> int:
        """The slot of a block: the one that it had before, else a new one."""
        if self._known:
            mapping = self.process.space.find(source.pc)
            label = (
                self.generated.label(source.pc) if mapping is not None and not mapping.file_backed else None
            )
            key = source.pc, source.code, (*located(source.pc, mapping), label)
            slot = self._known.get(key)
            if slot is not None:
                return slot
        return len(self.starts)

    def fixed_near(self, address: int) -> Cache:
        """Where something that outlives generations can be, near an address if there is such a place."""
        grounds = sorted(self.grounds, key=lambda ground: abs(ground.file.base - address))
        near = grounds[0] if abs(grounds[0].file.base - address) < layout.REACH else self.grounds[0]
        return near.fixed

    def fixed_at(self, address: int) -> Cache:
        """The cache of what outlives generations that holds an address."""
        return next(g.fixed for g in self.grounds if g.fixed.first <= address < g.fixed.end)
