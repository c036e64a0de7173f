"""The translate engine's own figures, for `--stats`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.coherence.guard import Guard


@dataclass
class Statistics:
    """Sums over all code caches that are gone: blocks translated, those of them that compiled code has made,
    and those put back from earlier runs, bytes of fragments, flushes, and of generated code the fragments
    trusted and the writes that were met."""

    blocks: int = 0
    compiled: int = 0
    put_back: int = 0
    bytes: int = 0
    flushes: int = 0
    trusted: int = 0
    written: int = 0

    def add(self, space: CodeCache) -> None:
        """Add a code cache."""
        kept = space.registry.put_back
        self.blocks += space.flusher.translated + len(space.registry.cells) - kept
        self.compiled += space.builder.compiled
        self.put_back += kept
        self.bytes += space.flusher.flushed_bytes + space.memory.bytes
        self.flushes += space.flusher.flushes

    def add_guard(self, guard: Guard) -> None:
        """Add what guarded one."""
        self.trusted += guard.trusted
        self.written += guard.writes

    def document(self, stops: int, answered: int, seconds: float, missed: int) -> dict[str, Any]:
        """All of them by name, with the stops that threads made, how many of them compiled code answered
        alone, the seconds spent on translating, and the indirect branches that missed the lookup table."""
        return {
            "stops": stops,
            "answered by compiled code": answered,
            "blocks translated": self.blocks,
            "by compiled code": self.compiled,
            "blocks kept from before": self.put_back,
            "translation seconds": round(seconds, 3),
            "cache bytes": self.bytes,
            "lookups missed": missed,
            "flushes": self.flushes,
            "generated blocks trusted": self.trusted,
            "writes to them": self.written,
        }
