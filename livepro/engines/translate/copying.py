"""Copies of single blocks: written into a cache, linked to others, and repeated where that pays."""

from __future__ import annotations

from livepro.engines.translate.backend import Backend, Emitter, Owed, Reader
from livepro.engines.translate.cache import Block, Cache
from livepro.engines.translate.changing import ChangingTranslations
from livepro.engines.translate.emitted import Check, Emitted, Field
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.source import SourceBlock
from livepro.engines.translate.unrolled import copies_of
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

_LINE = 64  # bytes of a cache line: a short loop is to be fetched from as few as can be


class CopiedTranslations(ChangingTranslations):
    """Copies blocks for `CodeSpace`, which says which, and where to."""

    def __init__(
        self, process: TracedProcess, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter
    ) -> None:
        super().__init__(process, memory, backend, reader, emitter)
        self._check = Check.NEVER
        self._queue: list[int] = []
        self._returns: list[int] = []
        self._urgent: list[int] = []

    def _copy(
        self, cache: Cache, at: int, source: SourceBlock, slot: int, own: int, owed: Owed | None = None
    ) -> Block:
        """Write a copy of the block of `slot` that counts for slot `own`."""
        cell = self.cells.take(own)
        if self.refill:
            self.memory.note_lengths(cell, (len(source.facts),), self.cells.range)
        stubs = 0 if self.emitter.recording is not None else self._stubs(cache, source)
        details = self.emitter.emit(source, at, cell, self._live_out, self._check, owed, stubs)
        if not self.cells.original and (details.owed or details.more_budgets):
            details.owed = tuple((self._slot_of(cell), length) for cell, length in details.owed)
            details.more_budgets = tuple(
                (stop, resume, self._slot_of(cell)) for stop, resume, cell in details.more_budgets
            )
        code = details.code
        self.bytes += len(code)
        block = Block(source, slot, at, details, self._place_cold(cache, at, details), own)
        fields = cache.record.fields
        for kind, offset in details.fields:
            fields[kind].append(at + offset)
        for offset, value in details.literals:
            place = self._cold(cache, value.to_bytes(8, "little"), 8)
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

    def _number(self, block: Block, mapping: Mapping | None) -> None:
        """Enter a block with a new slot."""
        self.starts.append(block.start)
        self.mappings.append(mapping)
        self._blocks.append(block)

    def _place_cold(self, cache: Cache, at: int, details: Emitted) -> int:
        """Put what is out of the way of a copy at `at` where it belongs, and let the copy lead there.
        Returns where that is, 0 if there is nothing."""
        cold = details.cold
        if cold is None:
            return 0
        cache.cold += 1  # who has run into a stop is right behind it, and not there
        place, code = cache.cold, bytearray(cold.code)
        back = len(code) - 4
        self._link(code, back, at + cold.back - (place + back))
        self._link(details.code, cold.enter, place - (at + cold.enter))
        self._cold(cache, bytes(code))
        fields = cache.record.fields
        for kind, offset in cold.fields:
            fields[kind].append(place + offset)
        return place

    def _stubs(self, cache: Cache, source: SourceBlock) -> int:
        """Where a block leads that branches by a jump table (`tables`); 0 for all others."""
        raise NotImplementedError

    def _put_aside(self, cache: Cache, block: Block) -> None:
        """Put the comparison of a copy out of the way, if it may be, and let the copy lead there."""
        aside, skip = block.details.aside, block.details.skip
        if aside is None or skip is None:
            return
        at, field = cache.hot, block.start + skip
        self._link(aside.code, len(aside.code) - 4, field + 4 - (at + len(aside.code) - 4))
        self._write(cache, at, bytes(aside.code))
        block.compares = at - field
        self._link(cache.map, field - cache.base, block.compares)
        cache.hot = at + len(aside.code)
        comparison = Block(block.source, block.slot, at, aside)
        cache.starts.append(at)
        cache.blocks.append(comparison)
        if cache.colds:
            cache.colds.append(cache.cold)  # as many as there are starts
        self.bytes += len(aside.code)
        self._note_stops(cache, comparison, Check.NEVER)
        self.offer(cache, block, self.cells.take(block.own), self.mappings[block.slot])

    def _slot_of(self, cell: int) -> int:
        slot = self.cells.slot(cell)
        assert slot is not None
        return slot

    def _lead_on(self, cache: Cache, block: Block) -> None:
        """Link what leads out of a new copy, and take note of its stops."""
        details, check = block.details, self._check
        for offset, target in details.exits:
            self._exit(cache, block.start + offset, target)
        returns_to = details.returns_to
        if returns_to is not None and returns_to not in self.lookup.landings:
            self._returns.append(returns_to)
        self._urgent += details.urgent
        if (
            details.natives
            or details.changes
            or details.budget
            or details.full
            or details.cold
            or details.more_budgets
            or check is not Check.NEVER
        ):
            self._note_stops(cache, block, check)

    def _exit(self, cache: Cache, field: int, target: int) -> None:
        """Link the direct branch whose field is at `field` to `target`."""
        all_links = cache.links if cache.serves(target) else self._links
        links = all_links.get(target)
        if links is None:
            all_links[target] = [field]
        else:
            links.append(field)
        if cache.module is not None:
            if all_links is self._links:
                cache.key = ""
            cache.record.links.append((field, target))
        slot = self.slots.get(target)
        if slot is not None:
            self._patch(cache, field, self.starts[slot])
            return
        self._queue.append(target)
        stub = cache.stubs.get(target)
        if stub is None:
            stub = cache.cold
            cache.cold += len(self._stop)
            cache.map[stub - cache.base : cache.cold - cache.base] = self._stop
            self.bytes += len(self._stop)
            cache.stubs[target] = stub
            self.exits[stub] = target
        self._patch(cache, field, stub)

    # -- blocks that branch to themselves

    def _unroll(self, cache: Cache, block: Block) -> None:
        """Let a block that branches to itself lead to further copies, and the last of them to it."""
        details, falls, pc = block.details, block.details.falls, block.source.pc
        if _loop_field(block) is None or falls is None or self._check is Check.WRITES:
            return
        if details.within is not None or details.owed:
            return
        if self.region is not None and self.region.armed(self.process, pc):
            return  # who enters it is to be seen
        mapping, jump, last = self.mappings[block.slot], self.backend.jump, block
        known = self.unrolled.of(block.slot)
        for n in range(copies_of(len(block.source.facts)) - 1):
            own = known[n] if n < len(known) else len(self.starts)
            at = cache.hot = cache.hot + _LINE - 1 & -_LINE
            copy = self._copy(cache, at, block.source, block.slot, own)
            if n < len(known):
                self.starts[own], self._blocks[own] = at, copy
            else:
                self.unrolled.add([own], [block.slot])
                self._number(copy, mapping)
            self._lead_on(cache, copy)
            end = self.emitter.padding(cache.hot, len(jump) - 4) + jump
            self._write(cache, cache.hot, end)
            cache.hot += len(end)
            self._exit(cache, cache.hot - 4, falls)
            self._put_aside(cache, copy)
            self._show(cache)
            field = _loop_field(last)
            assert field is not None
            self._patch(cache, field, at)
            last = copy

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
            slot = self.slots.get(pc)
            known = None if slot is None else self._blocks[slot]
            source = known.source if isinstance(known, Block) else self.text.decode(pc)
            live = self._live[pc] = self.reader.live_in(source)
        return live


def _loop_field(block: Block) -> int | None:
    """The address of the field of a copy's branch to its own block, if that is how it ends."""
    pc = block.source.pc
    fields = [block.start + offset for offset, target in block.details.exits if target == pc]
    return fields[0] if len(fields) == 1 and block.details.falls != pc else None
