"""The translated code of one address space: caches, blocks, links, lookup table.

Everything here is addresses and bytes in the shared memory; threads and
signals are the engine's business.
"""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.backend import Backend, Emitter, Reader
from livepro.engines.translate.cache import Block, Cache, Place, Stop
from livepro.engines.translate.emitted import Check
from livepro.engines.translate.memory import SharedFile, ThreadAreas
from livepro.engines.translate.source import SourceBlock
from livepro.engines.translate.text import ProgramText
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

_CHAIN = 6  # blocks laid out in a row at a miss
_EAGER = 10  # blocks translated at a miss, besides


def _check_for(mapping: Mapping | None) -> Check:
    """How far code in a mapping can be trusted to stay what it is.

    Programs that write code usually do so in memory of its own, and enter it
    anew afterwards (JIT compilers). Code that the program's own writable
    segment holds may rewrite the very block it is in.
    """
    if mapping is None or mapping.stable_code:
        return Check.NEVER
    return Check.WRITES if mapping.file_backed and mapping.writable else Check.ENTRY


class CodeSpace:
    """Translates the code of one address space on demand."""

    def __init__(
        self, process: TracedProcess, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter
    ) -> None:
        self.process = process
        self.memory = memory
        self.backend = backend
        self.reader = reader
        self.text = ProgramText(process, backend, reader)
        self.emitter = emitter
        self._link = backend.link
        self._stop = backend.stop
        self.caches: list[Cache] = []
        self.blocks: dict[int, Block] = {}
        self.sources: list[SourceBlock] = []
        self.by_slot: list[Block] = []
        self.mappings: list[Mapping | None] = []
        self.stops: dict[int, Stop] = {}
        self.landings: dict[int, int] = {}
        self._tails: dict[int, int] = {}
        self.users = 0
        self._links: dict[int, list[int]] = {}
        self._stubs: dict[tuple[int, int], int] = {}
        self._versions: dict[tuple[int, bytes], Block] = {}
        self.exits: dict[int, int] = {}
        self._mapping: Mapping | None = None
        self._check = Check.NEVER
        self._queue: list[int] = []
        self._lengths = np.zeros(0, np.int64)
        self._returns: list[int] = []
        self._table = memory.table()
        self._live: dict[int, int] = {}
        self.gadget = 0
        self.miss = 0

    def fork(self, process: TracedProcess, memory: ThreadAreas, caches: list[SharedFile]) -> CodeSpace:
        """The same translations in a forked child, whose memory holds copies of the files."""
        child = CodeSpace(process, memory, self.backend, self.reader, self.emitter)
        child.gadget, child.miss = self.gadget, self.miss
        for mine, file in zip(self.caches, caches, strict=True):
            cache = Cache(mine.index, file)
            cache.hot, cache.cold = mine.hot, mine.cold
            cache.starts, cache.blocks = mine.starts.copy(), mine.blocks.copy()
            child.caches.append(cache)
        child.blocks = self.blocks.copy()
        child.sources = self.sources.copy()
        child.by_slot = self.by_slot.copy()
        child.mappings = self.mappings.copy()
        child.stops = self.stops.copy()
        child.exits = self.exits.copy()
        child.landings = self.landings.copy()
        child._tails = self._tails.copy()
        child._links = {target: fields.copy() for target, fields in self._links.items()}
        child._stubs = self._stubs.copy()
        child._versions = self._versions.copy()
        child._live = self._live.copy()
        return child

    # -- caches

    def used(self, cache: Cache) -> list[tuple[int, int]]:
        """The ranges of a cache's file that hold anything, as (start, end) offsets."""
        return [(0, cache.hot - cache.base), (layout.CACHE_SIZE // 2, cache.cold - cache.base)]

    def add_cache(self, file: SharedFile) -> Cache:
        """Begin a cache. The first holds the system call gadget and
        the stop that an empty table entry leads to."""
        cache = Cache(len(self.caches), file)
        base = file.base
        self.caches.append(cache)
        if cache.index == 0:
            self.gadget = base
            self._write(cache, base, self.backend.gadget)
            self.miss = base + 8
            self._write(cache, self.miss, self._stop)
            self.stops[self.miss] = Stop("miss")
            self._table[:] = memoryview(array("Q", [self.miss]) * layout.LOOKUP_ENTRIES)
        return cache

    def cache_for(self, pc: int) -> Cache | None:
        """The cache that can hold a copy of code at `pc`."""
        for cache in self.caches:
            room = cache.hot < cache.hot_end and cache.cold < cache.cold_end
            if room and abs(cache.base - pc) < layout.REACH:
                return cache
        return None

    def _write(self, cache: Cache, address: int, data: bytes) -> None:
        at = address - cache.base
        cache.map[at : at + len(data)] = data

    def cache_at(self, address: int) -> Cache:
        """The cache that holds a target address of livepro's own. Raises KeyError for others."""
        for cache in self.caches:
            if cache.base <= address < cache.end:
                return cache
        raise KeyError(hex(address))

    def holds(self, address: int) -> bool:
        """Whether a target address lies in a cache."""
        return any(cache.base <= address < cache.end for cache in self.caches)

    def locate(self, address: int) -> Place | None:
        """Where a cache address is in the program, None for an address that is no copy's."""
        return self.cache_at(address).locate(address) if self.holds(address) else None

    # -- translating

    def find(self, pc: int) -> Block | None:
        """The valid translation of `pc`, if there is one."""
        return self.blocks.get(pc)

    def translate(self, pc: int, *, landing: bool = False) -> Block | None:
        """Translate the block at `pc` and, eagerly, likely successors. None when its first
        instruction cannot be read or decoded. `landing` enters it in the lookup table."""
        block = self.blocks.get(pc)
        if block is None:
            block = self._chain(pc, landing, likely=True)
            if block is None:
                return None
        if landing and pc not in self.landings:
            self._land(pc, likely=True)
        budget = _EAGER
        while budget and (self._returns or self._queue):
            if self._returns:
                target, lands = self._returns.pop(), True
            else:
                target, lands = self._queue.pop(), False
            if target in self.blocks:
                if lands and target not in self.landings:
                    self._land(target, likely=False)
                continue
            budget -= 1
            self._chain(target, lands, likely=False)
        self._queue.clear()
        self._returns.clear()
        return block

    def _chain(self, pc: int, landing: bool, *, likely: bool) -> Block | None:
        """Lay out the block at `pc` and, behind it, those that follow when no branch is taken.

        Other threads run meanwhile: nothing may lead into the chain before all of
        it is written.
        """
        cache = self.cache_for(pc)
        if cache is None or len(self.sources) + _CHAIN > layout.MAX_SLOTS:
            return None  # no counter left: the engine steps what it cannot translate
        source = self.text.decode(pc)
        if source is None:
            return None
        revived = self._revive(source)
        if revived is not None:
            return revived
        at = cache.hot = (cache.hot + 15) & -16
        text, otherwise = self.emitter.landing(pc) if landing else (b"", 0)
        self._write(cache, at, text)
        at += len(text)
        first = block = self._place(cache, at, source)
        chain = [block]
        while (follows := block.details.falls) is not None:
            at += block.size
            ends = len(chain) == _CHAIN or follows in self.blocks or cache.hot >= cache.hot_end
            source = None if ends else self.text.decode(follows)
            if source is None:
                # The chain goes on elsewhere.
                jump = self.backend.jump
                end = self.emitter.padding(at, len(jump) - 4) + jump
                self._write(cache, at, end)
                cache.hot = at + len(end)
                self._exit(cache, cache.hot - 4, follows)
                break
            block = self._place(cache, at, source)
            chain.append(block)
        for block in chain:
            self._publish(block)
        if landing:
            begin = first.start - len(text)
            self._enter(cache, begin, begin + otherwise, pc, likely=likely)
        return first

    def _publish(self, block: Block) -> None:
        """Let the branches that waited for a block lead to it."""
        for field in self._links.get(block.source.pc, ()):
            self._patch(self.cache_at(field), field, block.start)

    def _place(self, cache: Cache, at: int, source: SourceBlock) -> Block:
        pc = source.pc
        slot = len(self.sources)
        mapping = self._mapping
        if mapping is None or not mapping.start <= pc < mapping.end:
            mapping = self._mapping = self.process.space.find(pc)
            self._check = _check_for(mapping)
        check = self._check
        details = self.emitter.emit(source, at, slot, self._live_out, check)
        code = details.code
        block = Block(source, slot, at, details)
        self.sources.append(source)
        self.mappings.append(mapping)
        self.by_slot.append(block)
        for offset, value in details.literals:
            place = self._cold(cache, value.to_bytes(8, "little"), 8)
            self._link(code, offset, place - (at + offset))
        here = at - cache.base
        cache.map[here : here + len(code)] = code
        cache.starts.append(at)
        cache.blocks.append(block)
        self.blocks[pc] = block
        cache.hot = at + len(code)
        for offset, target in details.exits:
            self._exit(cache, at + offset, target)
        returns_to = details.returns_to
        if returns_to is not None and returns_to not in self.landings:
            self._returns.append(returns_to)
        if details.natives or details.changes or details.budget or check is not Check.NEVER:
            self._note_stops(block, check)
        return block

    def _note_stops(self, block: Block, check: Check) -> None:
        """Remember what the stops in a copy are for."""
        source, details, at = block.source, block.details, block.start
        for offset, index, behind in details.natives:
            counted = offset >= block.counted
            encoding = source.code[source.offsets[index] : source.offsets[index + 1]]
            raises = self.backend.raises_trap(encoding)
            self.stops[at + offset] = Stop("native", block, 0, index, at + behind, counted, raises)
        for offset, index in details.changes:
            self.stops[at + offset] = Stop("changed", block, 0, index, 0, offset >= block.counted)
        if check is not Check.NEVER:
            self._versions[source.pc, source.code] = block
        if details.budget is not None:
            stop, resume = details.budget
            self.stops[at + stop] = Stop("budget", block, resume=at + resume)

    def _revive(self, source: SourceBlock) -> Block | None:
        """An earlier copy of the same bytes, put back in force."""
        block = self._versions.get((source.pc, source.code))
        if block is None:
            return None
        cache = self.cache_at(block.start)
        self.stops.pop(block.start, None)
        self._write(cache, block.start, bytes(block.details.code[: len(self._stop)]))
        self.blocks[source.pc] = block
        self._publish(block)
        return block

    def _cold(self, cache: Cache, data: bytes, align: int = 1) -> int:
        """Put bytes that are executed rarely, or not at all, out of the way."""
        at = cache.cold = (cache.cold + align - 1) & -align
        self._write(cache, at, data)
        cache.cold = at + len(data)
        return at

    def _exit(self, cache: Cache, field: int, target: int) -> None:
        """Link the direct branch whose field is at `field` to `target`."""
        links = self._links.get(target)
        if links is None:
            self._links[target] = [field]
        else:
            links.append(field)
        known = self.blocks.get(target)
        if known is not None:
            self._patch(cache, field, known.start)
            return
        self._queue.append(target)
        stub = self._stubs.get((cache.index, target))
        if stub is None:
            stub = cache.cold
            cache.cold += len(self._stop)
            cache.map[stub - cache.base : cache.cold - cache.base] = self._stop
            self._stubs[cache.index, target] = stub
            self.exits[stub] = target
        self._patch(cache, field, stub)

    def _patch(self, cache: Cache, field: int, destination: int) -> None:
        """Let the branch whose field is at `field` in `cache` lead to `destination`, over a
        long jump if it is far away."""
        if not self._link(cache.map, field - cache.base, destination - field):
            hop = self._cold(cache, self.backend.jump_far_away(destination), 8)
            self._link(cache.map, field - cache.base, hop - field)

    # -- the lookup table

    def _land(self, pc: int, *, likely: bool) -> None:
        """Enter the block at `pc` in the lookup table."""
        block = self.blocks[pc]
        cache = self.cache_at(block.start)
        text, otherwise = self.emitter.landing(pc)
        text += self.backend.jump
        at = self._cold(cache, text, 16)
        self._patch(cache, at + len(text) - 4, block.start)
        self._enter(cache, at, at + otherwise, pc, likely=likely)

    def _enter(self, cache: Cache, landing: int, otherwise: int, pc: int, *, likely: bool) -> None:
        """Put a landing into its table entry's chain: at the head if its target is being
        branched to, else (a return that is yet to come) at the tail. `otherwise` is
        where its jump to the next one has its field."""
        entry = pc >> self.backend.index_shift & layout.LOOKUP_ENTRIES - 1
        tail = self._tails.get(entry)
        self._patch(cache, otherwise, self._table[entry] if likely else self.miss)
        if likely or tail is None:
            self._table[entry] = landing
        else:
            self._patch(self.cache_at(tail), tail, landing)
        if not likely or tail is None:
            self._tails[entry] = otherwise
        self.landings[pc] = landing

    def lengths(self) -> npt.NDArray[np.int64]:
        """Instructions of the block of each counter slot (int64)."""
        if len(self._lengths) < len(self.sources):
            more = [len(source.facts) for source in self.sources[len(self._lengths) :]]
            self._lengths = np.concatenate((self._lengths, np.array(more, np.int64)))
        return self._lengths

    # -- flags

    def _live_out(self, source: SourceBlock) -> int:
        """Flags that the direct successors of a block may read before overwriting them."""
        live = 0
        last = source.facts[-1]
        if source.target:
            live |= self._live_in(source.target)
        if not last.ends or last.condition_falls:
            live |= self._live_in(source.end)
        return live

    def _live_in(self, pc: int) -> int:
        live = self._live.get(pc)
        if live is None:
            known = self.blocks.get(pc)
            source = known.source if known is not None else self.text.decode(pc)
            live = self._live[pc] = self.reader.live_in(source)
        return live

    # -- forgetting

    def drop(self, start: int, end: int) -> None:
        """Forget the blocks whose code overlaps [start, end): it is about to be something else."""
        gone = [
            block for pc, block in self.blocks.items() if pc < end and start < pc + block.source.offsets[-1]
        ]
        for block in gone:
            self.forget(block)
        self._live.clear()
        self.text.forget()
        self._mapping = None

    def forget(self, block: Block) -> None:
        """Make a block stop whoever enters it."""
        pc = block.source.pc
        cache = self.cache_at(block.start)
        del self.blocks[pc]
        self.landings.pop(pc, None)
        self._write(cache, block.start, self._stop)
        self.stops[block.start] = Stop("dropped", block, pc)
