"""Code that may change, translated by compiled code: where it is, how it is read, what is known of it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import AT, CODE_SIZE, LENGTH, PC, START, Changing
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.engines.translate.coherence.guard import WORD
from livepro.engines.translate.coherence.trust import Trust
from livepro.engines.translate.translator.backend import Compiler
from livepro.engines.translate.translator.emitted import Check
from livepro.engines.translate.translator.text import check_for
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

_REACH = 1 << 27
"""Bytes to both sides of the first block: HotSpot's code cache takes 240 MiB, and its first blocks are in the
middle."""
Array = npt.NDArray[np.int64]


class ChangingCode:
    """Knows of the code of one process that may change (`Check.ENTRY`), what a code cache's other parts want
    to know of each block that is made of it."""

    def __init__(
        self,
        process: TracedProcess,
        memory: CacheMemory,
        registry: BlockRegistry,
        generated: GeneratedCode,
        trust: Trust,
    ) -> None:
        self._process = process
        self._memory = memory
        self._registry = registry
        self._generated = generated
        self._trust = trust
        self._alone: WeakKeyDictionary[Cache, int] = WeakKeyDictionary()

    def begin(self, cache: Cache, compiler: Compiler, pc: int) -> bool:
        """Have the code around `pc` translated into a cache from now on; False if that does not change."""
        if not self._changes(self._process.space.find(pc)):
            return False
        start, end = cache.extent = self._around(pc)
        cache.record.begin(start)
        cache.changing = Changing(*compiler.changing(start, end - start))
        cache.text = cache.changing.kept
        return True

    def _around(self, pc: int) -> tuple[int, int]:
        """The addresses around one where no file is mapped."""
        start, end = max(pc - _REACH, 0) & -layout.PAGE, pc + _REACH & -layout.PAGE
        for mapping in self._process.space.within(start, end):
            if mapping.file_backed or mapping.stable_code:
                if mapping.end <= pc:
                    start = max(start, mapping.end)
                elif mapping.start > pc:
                    end = min(end, mapping.start)
        return start, end

    def keeps(self, cache: Cache) -> bool:
        """Whether no module has been mapped since among the code that is translated into a cache: what
        compiled code has made there is then gone on with in Python."""
        (start, end), caches = cache.extent, self._memory.caches.all
        if self._alone.get(cache) == len(caches):
            return True
        for other in caches:
            module = other.module
            if module is not None and module.start < end and start < module.end:
                if cache.compiled is not None:
                    cache.give_up()
                return False
        self._alone[cache] = len(caches)
        return True

    @staticmethod
    def _changes(mapping: Mapping | None) -> bool:
        return mapping is not None and mapping.executable and check_for(mapping) is Check.ENTRY

    def read(self, address: int, size: int) -> bytes:
        """What of so many bytes from an address on is code that may change."""
        mapping = self._process.space.find(address)
        if mapping is None or not self._changes(mapping):
            return b""
        return self._process.memory.read(address, min(size, mapping.end - address))

    def read_anew(self, cache: Cache, pc: int) -> None:
        """Have all code read anew, that at `pc` at once."""
        assert cache.changing is not None
        text = cache.changing.latest
        text.forget()
        text.fill(pc - cache.extent[0], self.read)

    def enter(self, cache: Cache, rows: Array) -> tuple[Array, Array]:
        """Enter blocks that compiled code has made (rows of `Batch.blocks`, with those of comparisons), which
        count in the next cells. Returns the cells and slots of all rows."""
        registry, changing = self._registry, cache.changing
        assert changing is not None
        made = rows[:, LENGTH] > 0
        blocks = rows[made]
        blocks[:, AT] = changing.kept.add(changing.latest, blocks[:, PC], blocks[:, CODE_SIZE])
        rows[made] = blocks
        cell, find = registry.cells.range[1], self._process.space.find
        pcs, starts = (blocks[:, PC] + cache.extent[0]).tolist(), (blocks[:, START] + cache.base).tolist()
        mappings: list[Mapping | None] = []
        mapping = None
        for pc in pcs:
            if mapping is None or not mapping.start <= pc < mapping.end:
                mapping = find(pc)
            mappings.append(mapping)
        # (That may have found out that all before is gone in some places: what is entered now is not.)
        labels = [self._generated.label(pc) for pc in pcs]
        slots = registry.enter_compiled(cache, blocks, mappings)
        for pc, slot, label in zip(pcs, slots.tolist(), labels, strict=True):
            self._generated.note(pc, slot, label)
        cells = np.arange(cell, cell + len(blocks), dtype=np.int64)
        offer, codes = self._trust.offer_made, cache.codes_of(blocks)
        for n, (pc, start) in enumerate(zip(pcs, starts, strict=True)):
            branch = start + (-start & WORD - 1)  # see `Emitter.emit`
            offer(cache, start, branch, (pc, codes[n]), int(slots[n]), cell + n, mappings[n])
        # (Each comparison is behind its fragment, in the same order, chain by chain.)
        all_cells, all_slots = np.zeros((2, len(rows)), np.int64)
        all_cells[made], all_slots[made] = cells, slots
        all_cells[~made], all_slots[~made] = cells, slots
        return all_cells, all_slots
