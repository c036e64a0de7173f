"""Branches by jump tables: where one can lead is known, and need not be looked up.

How interpreters reach the code of their next operation, and switch statements their cases: one byte chooses
from a table of addresses that nobody writes to. Each entry gets a stub that leaves in the register what
the table holds and leads on as any direct branch does; the branch becomes a computed one to the stubs
(`Backend.jump_table`). If the table's memory is mapped otherwise, all code that may branch by it is
translated anew.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.linker import Linker
from livepro.engines.translate.translator.backend import ENTRIES, Backend, JumpTable
from livepro.engines.translate.translator.emitted import Check
from livepro.engines.translate.translator.source import SourceBlock
from livepro.linux.proc import Mapping
from livepro.linux.written import written_to
from livepro.tracee import TracedProcess

TABLE_SIZE = ENTRIES * 8
LOW = 1 << 31  # below it a signed displacement of 32 bits is an address

Tables = dict[tuple[int, JumpTable], tuple[int, tuple[int, int]]]
"""By cache: where a table's stubs are (0: it cannot be branched by so), and the code that it leads to."""


class JumpTables:
    """The constant tables that fragments of one code cache branch by."""

    def __init__(self, process: TracedProcess, memory: CacheMemory, linker: Linker, backend: Backend) -> None:
        self._process = process
        self._memory = memory
        self._linker = linker
        self._backend = backend
        self._tables: Tables = {}

    def fork_into(self, child: JumpTables) -> None:
        """Let a forked child's tables be the same."""
        child._tables = self._tables.copy()

    def flush(self) -> None:
        """Forget the stubs: they have been dropped."""
        self._tables = {}

    def stubs(self, cache: Cache, source: SourceBlock, check: Check) -> int:
        """Where the stubs are that a block branches to by a jump table; 0 for all other blocks."""
        table = self._backend.jump_table(source)
        if table is None or check is not Check.NEVER:
            return 0
        code = self._process.space.find(source.pc)
        if code is None:
            return 0
        key = cache.base, table
        known = self._tables.get(key)
        if known is None:
            known = self._tables[key] = self._lay_stubs(cache, code, table), (code.start, code.end)
        return known[0]

    def _lay_stubs(self, cache: Cache, code: Mapping, table: JumpTable) -> int:
        """Put the stubs of a table into a cache. Returns where the first begins, 0 if they cannot be."""
        if cache.end > LOW or code.end > LOW or not self.is_constant(table.address):
            return 0
        entries = np.frombuffer(self._process.memory.read(table.address, TABLE_SIZE), np.uint64)
        if len(entries) < ENTRIES or ((entries < code.start) | (entries >= code.end)).any():
            return 0
        stubs = [self._backend.table_stub(table, entry) for entry in entries.tolist()]
        at = begin = self._memory.cold(cache, b"".join(text for text, _ in stubs), 16)
        for entry, (text, _) in zip(entries.tolist(), stubs, strict=True):
            at += len(text)
            self._linker.exit(cache, at - 4, entry, eager=False)  # most are never branched to
        cache.record.tables.append(table.address)
        return begin + stubs[0][1]

    def is_constant(self, address: int) -> bool:
        """Whether a table at `address` is and stays what the file holds that it comes from."""
        mapping = self._process.space.find(address)
        if mapping is None or address + TABLE_SIZE > mapping.end or mapping.writable or mapping.shared:
            return False
        return mapping.file_backed and not written_to(self._process.pid, mapping)

    def _branched_by(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Where the tables are that there are branches by, and the code, as [start, end), of these."""
        for (_, table), (stubs, code) in self._tables.items():
            if stubs:
                yield table.address, code
        for cache in self._memory.caches.all:
            persisted, module = cache.persisted, cache.module
            if persisted is not None and module is not None and not cache.stale:
                for offset in persisted.tables.tolist():
                    yield module.start + offset, (module.start, module.end)

    def _branching_by(self, start: int, end: int) -> set[tuple[int, int]]:
        """The code that may branch by a table which overlaps [start, end)."""
        return {code for at, code in self._branched_by() if at < end and start < at + TABLE_SIZE}

    def overlap(self, start: int, end: int) -> bool:
        """Whether there are branches by a table that overlaps [start, end)."""
        return bool(self._branching_by(start, end))

    def changed(self) -> list[int]:
        """The addresses of tables that are constant no longer."""
        return [at for at in {at for at, _ in self._branched_by()} if not self.is_constant(at)]

    def drop(self, start: int, end: int) -> set[tuple[int, int]]:
        """Give up the tables that overlap [start, end). Returns the code, as [start, end), that may branch by
        them."""
        touched = self._branching_by(start, end)
        for key in [key for key, (_, code) in self._tables.items() if code in touched]:
            del self._tables[key]
        return touched
