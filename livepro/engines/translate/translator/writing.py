"""Single fragments: written into a cache, linked to others, and unrolled where that pays."""

from __future__ import annotations

from collections.abc import Iterable

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import LARGEST_FRAGMENT, Cache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.linker import Linker, Pending
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.coherence.region_stops import RegionStops
from livepro.engines.translate.coherence.trust import Trust
from livepro.engines.translate.translator.backend import Backend, Emitter, Owed
from livepro.engines.translate.translator.emitted import Check, Emitted, Field
from livepro.engines.translate.translator.liveness import Liveness
from livepro.engines.translate.translator.source import SourceBlock, shortened
from livepro.engines.translate.translator.tables import JumpTables
from livepro.engines.translate.translator.unrolled import copies_of

_LINE = 64  # bytes of a cache line: a short loop is to be fetched from as few as can be
# Bytes of code of which a fragment is small enough in any case, where it compares its code on entry, and
# behind each write: 64 writes, with up to 56 bytes each for each 8 that are compared.
_SURE = {Check.NEVER: 512, Check.ENTRY: 512, Check.WRITES: 128}
_SURE_FILTERED = 128  # the same where each access has a slow path, of up to 140 bytes
_MOST_WATCHED = 1024  # bytes of code that compares itself behind each write: more would not fit by far


class FragmentWriter:
    """Writes the fragments that `BlockBuilder` lays out. `check` is how far the code that they are
    made of can be trusted to stay what it is."""

    def __init__(
        self,
        memory: CacheMemory,
        registry: BlockRegistry,
        linker: Linker,
        pending: Pending,
        tables: JumpTables,
        liveness: Liveness,
        trust: Trust,
        regions: RegionStops,
        backend: Backend,
        emitter: Emitter,
    ) -> None:
        self._memory = memory
        self._registry = registry
        self._linker = linker
        self._pending = pending
        self._tables = tables
        self._live_out = liveness.out_of
        self._trust = trust
        self._regions = regions
        self._link = backend.link
        self._jump = backend.jump
        self._emitter = emitter

    def write(
        self,
        cache: Cache,
        at: int,
        source: SourceBlock,
        slot: int,
        own: int,
        check: Check,
        owed: Owed | None = None,
    ) -> Fragment:
        """Write a fragment of the block of `slot` that counts for slot `own`."""
        memory, registry = self._memory, self._registry
        cell = registry.cell_of(own, len(source.facts))
        recording = self._emitter.recording
        recorded = recording is not None and recording.wants(source)
        stubs = 0 if recorded else self._tables.stubs(cache, source, check)
        module, live_out = cache.module, self._live_out
        if module is not None and source.end > module.end:
            # What is behind the module goes on as if it were of it; in another run it may not be executable.
            cache.key = ""
        details = self._emitter.emit(source, at, cell, lambda s: live_out(s, module), check, owed, stubs)
        if not registry.cells.original and (details.owed or details.more_budgets):
            slot_of = registry.slot_of
            details.owed = tuple((slot_of(cell), length) for cell, length in details.owed)
            details.more_budgets = tuple(
                (stop, resume, slot_of(cell)) for stop, resume, cell in details.more_budgets
            )
        code = details.code
        memory.bytes += len(code)
        block = Fragment(source, slot, at, details, self._write_cold(cache, at, details), own)
        fields = cache.record.fields
        for kind, offset in details.fields:
            fields[kind].append(at + offset)
        for offset, value in details.literals:
            place = memory.cold(cache, value.to_bytes(8, "little"), 8)
            fields[Field.ADDRESS].append(place)
            self._link(code, offset, place - (at + offset))
        here = at - cache.base
        cache.map[here : here + len(code)] = code
        cache.starts.append(at)
        if block.cold:
            cache.colds.append(block.cold)
        cache.blocks.append(block)
        cache.hot = at + len(code)
        return block

    def _write_cold(self, cache: Cache, at: int, details: Emitted) -> int:
        """Write the slow paths of a fragment at `at`, and let the fragment lead there.
        Returns where that is, 0 if there is none."""
        cold = details.cold
        if cold is None:
            return 0
        cache.cold += 1  # a thread that has run into a stop is right behind it, and not in the cold path
        place, code = cache.cold, bytearray(cold.code)
        for offset, to in cold.backs:
            self._link(code, offset, at + to - (place + offset))
        for enter, begin in cold.enters:
            self._link(details.code, enter, place + begin - (at + enter))
        self._memory.cold(cache, bytes(code))
        fields = cache.record.fields
        for kind, offset in cold.fields:
            fields[kind].append(place + offset)
        return place

    def fitting(self, cache: Cache, source: SourceBlock, check: Check) -> SourceBlock:
        """The block, or as much of its beginning as there is certain to be room for in one fragment."""
        sure = _SURE[check] if self._emitter.entries is None else _SURE_FILTERED
        if source.offsets[-1] <= sure:
            return source
        if check is Check.WRITES:
            source = shortened(source, _MOST_WATCHED)
        module, live_out = cache.module, self._live_out
        while len(source.facts) > 1:
            details = self._emitter.emit(source, cache.hot, 0, lambda s: live_out(s, module), check)
            cold = 0 if details.cold is None else len(details.cold.code)
            if max(len(details.code) + _size(details.aside), cold) <= LARGEST_FRAGMENT:
                break
            source = shortened(source, source.offsets[-1] // 2)
        return source

    def put_aside(self, cache: Cache, block: Fragment) -> None:
        """Write the comparison of a fragment out of line, if it may be, and let the fragment lead there."""
        aside, skip = block.details.aside, block.details.skip
        if aside is None or skip is None:
            return
        registry = self._registry
        at, field = cache.hot, block.start + skip
        self._link(aside.code, len(aside.code) - 4, field + 4 - (at + len(aside.code) - 4))
        self._memory.write(cache, at, bytes(aside.code))
        block.compares = at - field
        self._link(cache.map, field - cache.base, block.compares)
        cache.hot = at + len(aside.code)
        comparison = Fragment(block.source, block.slot, at, aside)
        cache.starts.append(at)
        cache.blocks.append(comparison)
        if cache.colds:
            cache.colds.append(cache.cold)  # as many as there are starts
        self._memory.bytes += len(aside.code)
        registry.note_stops(cache, comparison, Check.NEVER)
        cell = registry.cells.take(block.own)
        if not self._regions.covers(block.start):
            self._trust.offer(cache, block, cell, registry.mappings[block.slot])

    def lead_on(self, cache: Cache, block: Fragment, check: Check) -> None:
        """Link the branches that leave a new fragment, and take note of its stops."""
        details = block.details
        for offset, target in details.exits:
            self._linker.exit(cache, block.start + offset, target)
        returns_to = details.returns_to
        if returns_to is not None and returns_to not in self._memory.lookup.landings:
            self._pending.returns.append(returns_to)
        self._pending.urgent += details.urgent
        if (
            details.natives
            or details.changes
            or details.budget
            or details.full
            or details.cold
            or details.more_budgets
            or check is not Check.NEVER
        ):
            self._registry.note_stops(cache, block, check)

    def unroll(self, cache: Cache, block: Fragment, check: Check) -> None:
        """Let a block that branches to itself lead to further fragments, and the last of them to it."""
        details, falls, pc = block.details, block.details.falls, block.source.pc
        if _loop_field(block) is None or falls is None or check is Check.WRITES:
            return
        if details.within is not None or details.owed:
            return
        if self._regions.armed(pc):
            return  # a thread that enters it is to be seen
        memory, registry = self._memory, self._registry
        mapping, jump, last = registry.mappings[block.slot], self._jump, block
        known = registry.unrolled.of(block.slot)
        for n in range(copies_of(len(block.source.facts)) - 1):
            own = known[n] if n < len(known) else len(registry.starts)
            at = cache.hot = cache.hot + _LINE - 1 & -_LINE
            copy = self.write(cache, at, block.source, block.slot, own, check)
            if n < len(known):
                registry.enter_again(own, copy)
            else:
                registry.unrolled.add([own], [block.slot])
                registry.enter(copy, mapping)
            self.lead_on(cache, copy, check)
            end = self._emitter.padding(cache.hot, len(jump) - 4) + jump
            memory.write(cache, cache.hot, end)
            cache.hot += len(end)
            self._linker.exit(cache, cache.hot - 4, falls)
            self.put_aside(cache, copy)
            memory.show(cache)
            field = _loop_field(last)
            assert field is not None
            memory.patch(cache, field, at)
            last = copy


def _size(aside: Emitted | None) -> int:
    return 0 if aside is None else len(aside.code)


def aside_of(blocks: Iterable[Fragment]) -> int:
    """Bytes that the comparisons of fragments will take that have yet to be put aside."""
    return sum(_size(block.details.aside) for block in blocks)


def _loop_field(block: Fragment) -> int | None:
    """The address of the field of a fragment's branch to its own block, if that is how it ends."""
    pc = block.source.pc
    fields = [block.start + offset for offset, target in block.details.exits if target == pc]
    return fields[0] if len(fields) == 1 and block.details.falls != pc else None
