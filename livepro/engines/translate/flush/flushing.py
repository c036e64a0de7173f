"""A flush: all fragments dropped when there is no room for new ones, and room made of what they took."""

from __future__ import annotations

from collections.abc import Callable

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.linker import Linker
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.codecache.stop_reasons import PinnedStop
from livepro.engines.translate.coherence.trust import Trust
from livepro.engines.translate.counting.counters import PARTS
from livepro.engines.translate.flush.generations import FlushedGeneration, PinnedReturn
from livepro.engines.translate.translator.backend import Backend

CACHE_SIZE = 160_000_000
"""Bytes of fragments for one process unless another limit is set."""

_MARGIN = 1 << 12  # cells left for one translation and what has to come with it


class Flusher:
    """Drops all fragments of one code cache (`flush`), and makes their room free when no thread is in them
    any more (`reclaim`).

    There is no more room from so many bytes of fragments on (`size`; None: as many as the engine likes).
    `forget` has all other parts of the code cache forget the fragments. `flushes`, and of what was flushed
    the blocks `translated` and the bytes, are counted; `looked` is when it was last looked at whether threads
    have left dropped fragments (seconds, monotonic).
    """

    def __init__(
        self,
        memory: CacheMemory,
        registry: BlockRegistry,
        linker: Linker,
        trust: Trust,
        backend: Backend,
        size: int | None,
        forget: Callable[[], None],
    ) -> None:
        self.flushes = 0
        self.translated = 0
        self.flushed_bytes = 0
        self.looked = 0.0
        self._memory = memory
        self._registry = registry
        self._linker = linker
        self._trust = trust
        self._system_call = backend.system_call
        self._stop = backend.stop
        self._limit = size or CACHE_SIZE
        self._forget = forget

    def has_room_for(self, blocks: int, size: int) -> bool:
        """Whether so many blocks and bytes leave room for others: a sixteenth of what there is in all."""
        cells = self._registry.cells
        spare = len(cells.part) // 16, self._limit // 16
        return cells.free - blocks >= spare[0] and self._limit - self._memory.bytes - size >= spare[1]

    def could_hold(self, blocks: int, size: int) -> bool:
        """Whether another process would have room for so many blocks and bytes besides others."""
        return blocks <= len(PARTS[0]) // 8 * 7 and size <= self._limit // 8 * 7

    @property
    def full(self) -> bool:
        """Whether there is no room left."""
        return self._memory.bytes >= self._limit or self._registry.cells.free <= _MARGIN

    @property
    def half_full(self) -> bool:
        """Whether half of the room is taken."""
        cells = self._registry.cells
        return self._memory.bytes * 2 >= self._limit or cells.free <= len(cells)

    def flush(self) -> None:
        """Drop all fragments and begin anew. Threads may be in the old ones, and may go on there up to the
        end of their blocks. None may be left in those that were dropped before."""
        memory, registry = self._memory, self._registry
        assert memory.flushed is None
        self._trust.stop_writing()
        with registry.moving():
            starts = {registry.starts[slot]: pc for pc, slot in registry.slots.items()}
            memory.lookup.reset()
            memory.stop_all(starts)
            registry.remember()
            flushed = FlushedGeneration(
                memory.caches, memory.stops, self._linker.exits, starts, registry.cells
            )
            self.flushed_bytes += memory.bytes
            self.translated += len(registry.cells)
            registry.flush()
            memory.flush(flushed)
            self._linker.flush()
            self._forget()
            self.flushes += 1

    def wait_behind(self, address: int, advance: int) -> PinnedReturn | None:
        """What will be left of dropped fragments for a thread that sleeps at `address`, where there is a stop
        from now on; `advance`: how far that takes the program counter. None where nobody can sleep."""
        flushed = self._memory.flushed
        assert flushed is not None
        place = flushed.locate(address)
        cache = flushed.cache_at(address)
        begin = address - len(self._system_call)
        called = flushed.locate(begin)
        if place is None or cache is None or called is None or not place.behind_syscall:
            return None
        # A thread that comes back to it must be expected, whether the rest can be reclaimed or not.
        stop = PinnedStop(place.block, place.pc, place.index, address, place.counted)
        flushed.stops[address] = stop
        self._memory.write(cache, address, self._stop)
        return PinnedReturn(begin, address, address + advance, called, place, stop)

    def reclaim(self, pinned: dict[int, PinnedReturn]) -> None:
        """No thread is in dropped fragments any more, but those that are `pinned` for; their counters have
        been taken down."""
        flushed = self._memory.flushed
        assert flushed is not None
        self._registry.give_up(flushed.cells)
        self._memory.release(pinned)
