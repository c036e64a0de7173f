"""Fragments of which is known no more than where they are: looked into when somebody asks what they are.

Emission depends on nothing but the code, the flags its successors read, where the fragment is, the cell it
counts in, and whether it branches by a table: emitting it once more tells where everything is.
"""

from __future__ import annotations

from typing import NamedTuple

from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.compiled_code import Array, batch_of
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

    def fragment(self, cache: Cache, row: int) -> Fragment:
        """The fragment in a row of a cache. Raises RuntimeError if its code gives another one."""
        return self._put_back(cache, row) if row < cache.kept else self._made(cache, row)

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

    def _made(self, cache: Cache, row: int) -> Fragment:
        return self.made(cache, *batch_of(cache.batches, row))

    def made(self, cache: Cache, cell: int, slot: int, known: Array) -> Fragment:
        """The fragment of `slot` that compiled code has made, and that counts in `cell`; it is `known` as a
        row of `Batch.blocks`. Raises RuntimeError if its code gives another one."""
        pc, code = cache.code_of(known)
        live, start, size = int(known[5]), cache.base + int(known[1]), int(known[2])
        source = self._reader.decode(self._backend.text(pc, code), pc)
        details = self._emitter.emit(source, start, cell, lambda _: live, Check.NEVER)
        if len(details.code) != size or len(source.facts) != known[3]:
            raise RuntimeError(f"compiled code translates {code.hex()} otherwise")
        return Fragment(source, slot, start, details, int(known[6]) and int(known[6]) + cache.base)
