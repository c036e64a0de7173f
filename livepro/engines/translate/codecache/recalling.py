"""Fragments of which is known no more than where they are: looked into when somebody asks what they are.

Emission depends on nothing but the code, the flags its successors read, where the fragment is, the cell it
counts in, and whether it branches by a table: emitting it once more tells where everything is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import (
    LENGTH,
    LIVE,
    SIZE,
    SLOW,
    START,
    Array,
    batch_of,
    comparison_of,
)
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.persist.module import PersistedModule
from livepro.engines.translate.translator.backend import Backend, Emitter, Reader
from livepro.engines.translate.translator.emitted import Check
from livepro.linux.proc import Mapping


class Restored(NamedTuple):
    """Blocks that were put back: their slots from `first` on, what they are, and the module's own."""

    first: int
    persisted: PersistedModule
    module: Mapping


class Recaller:
    """Says what fragments are that were put back whole, or made by compiled code."""

    def __init__(self, backend: Backend, reader: Reader, emitter: Emitter) -> None:
        self._backend = backend
        self._reader = reader
        self._emitter = emitter

    def fragment(self, cache: Cache, row: int, block_of: Callable[[int], Fragment]) -> Fragment:
        """The fragment in a row of a cache; `block_of` knows those of slots. Raises RuntimeError if its code
        gives another one."""
        if row < cache.kept:
            return self._put_back(cache, row)
        cell, slot, known = batch_of(cache.batches, row)
        if not known[LENGTH]:
            block = block_of(slot)
            assert block.details.aside is not None
            return Fragment(block.source, slot, cache.base + int(known[START]), block.details.aside)
        if cache.module is not None:
            return self.made(cache, cell, slot, known)
        block = self.made(cache, cell, slot, known, Check.ENTRY)
        assert block.details.skip is not None
        block.compares = cache.base + comparison_of(cache.batches, row) - (block.start + block.details.skip)
        return block

    def _put_back(self, cache: Cache, row: int) -> Fragment:
        persisted, module = cache.persisted, cache.module
        assert persisted is not None
        assert module is not None
        rank, start = int(persisted.ranks[row]), cache.starts[row]
        slot = cache.first_slot + int(persisted.counted[row])
        pc, code, _ = persisted.source(row)
        pc += module.start
        live = int(persisted.live[row])
        source = self._reader.decode(self._backend.text(pc, code), pc)
        cell, size = cache.first_cell + rank, int(persisted.sizes[row])
        details = self._emitter.emit(source, start, cell, lambda _: live, Check.NEVER)
        if len(details.code) != size:
            details = self._emitter.emit(source, start, cell, lambda _: live, Check.NEVER, None, start)
        if len(details.code) != size:
            raise RuntimeError(f"the translation kept for {module.path} is not what its code gives")
        cold = cache.colds[row] if cache.colds else 0
        return Fragment(source, slot, start, details, cold, cache.first_slot + rank)

    def made(self, cache: Cache, cell: int, slot: int, known: Array, check: Check = Check.NEVER) -> Fragment:
        """The fragment of `slot` that compiled code has made, and that counts in `cell`; it is `known` as a
        row of `Batch.blocks`, `check` is how far its code can be trusted. Raises RuntimeError if its code
        gives another one."""
        pc, code = cache.code_of(known)
        live, start, size = int(known[LIVE]), cache.base + int(known[START]), int(known[SIZE])
        source = self._reader.decode(self._backend.text(pc, code), pc)
        details = self._emitter.emit(source, start, cell, lambda _: live, check)
        if len(details.code) != size or len(source.facts) != known[LENGTH]:
            raise RuntimeError(f"compiled code translates {code.hex()} otherwise")
        return Fragment(source, slot, start, details, int(known[SLOW]) and int(known[SLOW]) + cache.base)
