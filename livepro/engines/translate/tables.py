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

from livepro.engines.translate.backend import ENTRIES, Backend, Emitter, JumpTable, Reader
from livepro.engines.translate.cache import Cache
from livepro.engines.translate.copying import CopiedTranslations
from livepro.engines.translate.emitted import Check
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.source import SourceBlock
from livepro.linux.proc import Mapping
from livepro.linux.written import written_to
from livepro.tracee import TracedProcess

_SIZE = ENTRIES * 8
LOW = 1 << 31  # below it a signed displacement of 32 bits is an address

Tables = dict[tuple[int, JumpTable], tuple[int, tuple[int, int]]]
"""By cache: where a table's stubs are (0: it cannot be branched by so), and the code that it leads to."""


class TabledTranslations(CopiedTranslations):
    """Translations whose branches by constant tables lead straight on."""

    def __init__(
        self, process: TracedProcess, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter
    ) -> None:
        super().__init__(process, memory, backend, reader, emitter)
        self._tables: Tables = {}

    def renew(self) -> None:
        super().renew()
        self._tables = {}

    def _stubs(self, cache: Cache, source: SourceBlock) -> int:
        table = self.backend.jump_table(source)
        if table is None or self._check is not Check.NEVER:
            return 0
        code = self.process.space.find(source.pc)
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
        entries = np.frombuffer(self.process.memory.read(table.address, _SIZE), np.uint64)
        if len(entries) < ENTRIES or ((entries < code.start) | (entries >= code.end)).any():
            return 0
        waiting = len(self._queue)
        stubs = [self.backend.table_stub(table, entry) for entry in entries.tolist()]
        at = begin = self._cold(cache, b"".join(text for text, _ in stubs), 16)
        for entry, (text, _) in zip(entries.tolist(), stubs, strict=True):
            at += len(text)
            self._exit(cache, at - 4, entry)
        del self._queue[waiting:]  # most are never branched to
        cache.record.tables.append(table.address)
        return begin + stubs[0][1]

    def is_constant(self, address: int) -> bool:
        """Whether a table at `address` is and stays what the file holds that it comes from."""
        mapping = self.process.space.find(address)
        if mapping is None or address + _SIZE > mapping.end or mapping.writable or mapping.shared:
            return False
        return mapping.file_backed and not written_to(self.process.pid, mapping)

    def _branched_by(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Where the tables are that there are branches by, and the code, as [start, end), of these."""
        for (_, table), (stubs, code) in self._tables.items():
            if stubs:
                yield table.address, code
        for cache in self.caches.all:
            unit, module = cache.unit, cache.module
            if unit is not None and module is not None and not cache.stale:
                for offset in unit.tables.tolist():
                    yield module.start + offset, (module.start, module.end)

    def _branching_by(self, start: int, end: int) -> set[tuple[int, int]]:
        """The code that may branch by a table which overlaps [start, end)."""
        return {code for at, code in self._branched_by() if at < end and start < at + _SIZE}

    def holds_table(self, start: int, end: int) -> bool:
        """Whether there are branches by a table that overlaps [start, end)."""
        return bool(self._branching_by(start, end))

    def check_tables(self) -> None:
        """Give up the tables that have been changed by threads which were not watched."""
        for address in {address for address, _ in self._branched_by()}:
            if not self.is_constant(address):
                self.drop(address, address + _SIZE)

    def drop(self, start: int, end: int) -> None:
        touched = self._branching_by(start, end)
        for key in [key for key, (_, code) in self._tables.items() if code in touched]:
            del self._tables[key]
        for code in touched:
            super().drop(*code)
        super().drop(start, end)
