"""Translations of code that changes: what was copied is dropped, and later copies take its place.

Fall-throughs, landings and links lead to a copy for as long as there is its generation. A dropped copy
stops whoever enters it, until the program's address has another one; from then on it leads there.
"""

from __future__ import annotations

import sys
from collections import deque

from livepro.engines.translate.backend import Backend, Emitter, Reader
from livepro.engines.translate.cache import Block, Cache, Stop
from livepro.engines.translate.guard import WORD, Checked, Guard
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.renewing import RenewedTranslations
from livepro.engines.translate.source import SourceBlock
from livepro.linux.proc import Mapping
from livepro.model.label import Origin
from livepro.tracee import TracedProcess

_SUCCEEDED = 8  # earlier copies of one address that lead straight to the latest, not from one to the next


class ChangingTranslations(RenewedTranslations):
    """Translations that can be dropped one by one, and guarded (`guard`)."""

    def __init__(
        self, process: TracedProcess, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter
    ) -> None:
        super().__init__(process, memory, backend, reader, emitter)
        self.guard: Guard | None = None
        self.unguarded: dict[int, Checked] = {}
        """Copies that a guard would be told of, by where they are."""
        self._former: dict[int, deque[Block]] = {}
        self._unlanded: set[int] = set()

    def renew(self) -> None:
        if self.guard is not None:
            self.guard.forget()  # and write to no copy any more
        super().renew()
        self.unguarded.clear()
        self._former, self._unlanded = {}, set()

    # -- trusting

    def offer(self, cache: Cache, block: Block, cell: int, mapping: Mapping | None) -> None:
        """Have a copy of generated code, which counts in `cell`, trusted when that pays, if nobody else can
        write to that."""
        skip, source = block.details.skip, block.source
        if skip is None or mapping is None or mapping.shared or mapping.inode or block.start in self._covered:
            return
        jump, nothing = self.backend.jump, self.backend.nothing
        branch = block.start + skip + 4 - len(jump) - cache.base
        at = branch & -WORD
        comparing = bytes(cache.map[at : at + WORD])
        trusting = comparing[: branch - at] + nothing + comparing[branch - at + len(nothing) :]
        words = int.from_bytes(comparing, sys.byteorder), int.from_bytes(trusting, sys.byteorder)
        label, extent = self.generated.labels.get(block.slot), (mapping.start, mapping.end)
        labelled = label is not None and label.origin != Origin.GENERATED
        copy = Checked(block.start, source.pc, source.code, cell, cache.map, at, *words, extent, labelled)
        if self.guard is None:
            self.unguarded[copy.start] = copy
        else:
            self.guard.add(copy)

    def guard_with(self, guard: Guard) -> None:
        """Have this guard decide which copies of generated code are trusted."""
        self.guard = guard
        for copy in self.unguarded.values():
            guard.add(copy)
        self.unguarded.clear()

    def _leave_alone(self, start: int) -> None:
        """Have the copy at `start` compare, and be written to by nobody else."""
        self.unguarded.pop(start, None)
        if self.guard is not None:
            self.guard.retire(start)

    def arm(self, pc: int) -> None:
        slot = self.slots.get(pc)
        if slot is not None:
            self._leave_alone(self.starts[slot])
        super().arm(pc)

    # -- dropping

    def drop(self, start: int, end: int) -> None:
        """Forget the blocks whose code overlaps [start, end): it is about to be something else."""
        for cache in self.caches.all:
            module = cache.module
            if module is None:
                within = cache.blocks
            elif module.start < end and start < module.end:
                # What it holds from now on is not what its file says.
                cache.stale, cache.key = True, ""
                within = cache.blocks[cache.kept :]
                if cache.unit is not None:
                    for pc in cache.unit.overlapping(start - module.start, end - module.start):
                        self.forget(pc + module.start)
            else:
                continue
            for block in within:
                assert block is not None
                if block.source.pc < end and start < block.source.end:
                    self.forget(block.source.pc)
        self._live.clear()
        self.text.forget()

    def forget(self, pc: int) -> None:
        """Make the block at `pc`, if it is translated, stop whoever enters it."""
        slot = self.slots.pop(pc, None)
        if slot is None:
            return
        if self.lookup.landings.pop(pc, None) is not None:
            self._unlanded.add(pc)
        start, block = self.starts[slot], self._blocks[slot]
        for copy in (start, *self._further(slot)):
            self._leave_alone(copy)
            self._write(self.cache_at(copy), copy, self._stop)
            self._stops[copy] = Stop("dropped", None, pc)
        if isinstance(block, Block) and block.details.skip is not None:
            self._former.setdefault(pc, deque(maxlen=_SUCCEEDED)).append(block)

    def _further(self, slot: int) -> list[int]:
        """Where the further copies of a block are."""
        return [self.starts[own] for own in self.unrolled.of(slot) if self.cells.of(own) is not None]

    def _publish(self, pc: int) -> None:
        super()._publish(pc)
        start = self.starts[self.slots[pc]]
        for block in self._former.get(pc, ()):
            # Its stop stays known: another thread may have run into it before, and be heard of after.
            assert block.details.skip is not None
            field = block.details.skip
            self._patch_at(block.start + field, start)
            if field >= len(self._stop):
                self._let_in(block)

    def _let_in(self, block: Block) -> None:
        """Take the stop off the start of a copy."""
        code = bytes(block.details.code[: len(self._stop)])
        self._write(self.cache_at(block.start), block.start, code)

    def _revive(self, source: SourceBlock) -> Block | None:
        """An earlier copy of the same bytes, put back in force."""
        block = self._versions.get((source.pc, source.code))
        if block is None or self.generated.labels.get(block.slot) != self.generated.label(source.pc):
            return None
        if block.details.skip is not None:
            former = self._former.get(source.pc)
            if former is not None and block in former:
                former.remove(block)
            cache = self.cache_at(block.start)
            self._link(cache.map, block.start - cache.base + block.details.skip, block.compares)
        self._let_in(block)
        if self.guard is not None:
            self.guard.revive(block.start)
        self.slots[source.pc] = block.slot
        self._publish(source.pc)
        return block
