"""What has been translated of one address space: blocks by counter slot, copies by address.

Blocks that were put back from kept translations (`keeping`) are looked into only
when somebody asks what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.recording import BlockStore
from livepro.engines.translate.backend import Backend, Emitter, Reader
from livepro.engines.translate.cache import Block, Cache, Caches, Place, Stop
from livepro.engines.translate.counters import HALVES, Cells
from livepro.engines.translate.emitted import Check
from livepro.engines.translate.files import CodeFiles
from livepro.engines.translate.generations import Dropped, Former
from livepro.engines.translate.memory import SharedFile, ThreadAreas
from livepro.engines.translate.unit import Unit
from livepro.engines.translate.unrolled import Unrolled
from livepro.linux.proc import Mapping


class Restored(NamedTuple):
    """Blocks that were put back: their slots from `first` on, what they are, and the module's own."""

    first: int
    unit: Unit
    module: Mapping


class Translations(CodeFiles):
    """The translations of one address space.

    `slots` leads from the program's address of a block to the slot of its valid
    translation; by slot there are `starts` of copies, `mappings` and blocks
    (`block`). `cells` are the counters in use. `exits` leads from the address of a stub to the
    target that is yet to be translated. `others` are mappings that get no cache of their own.
    """

    def __init__(self, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter) -> None:
        super().__init__(memory, backend, emitter)
        self.reader = reader
        self.cells = Cells(HALVES[0], original=True)
        self.unrolled = Unrolled()
        self.epoch = 0
        """Odd while counts are moved from one place to another (`moving`)."""
        self.slots: dict[int, int] = {}
        self.starts: list[int] = []
        self.mappings: list[Mapping | None] = []
        self.exits: dict[int, int] = {}
        self.others: set[Mapping] = set()
        self.users = 0
        self._blocks: list[Block | Former | None] = []
        self._restored: list[Restored] = []
        self._known: dict[tuple[int, bytes, object], int] = {}
        self._links: dict[int, list[int]] = {}
        self._reserved: dict[tuple[int, bytes], int] = {}
        self._versions: dict[tuple[int, bytes], Block] = {}
        self._lengths = np.zeros(0, np.int64)
        self._counting = Lock()  # other threads ask for lengths, too
        self._live: dict[int, int] = {}
        self._executions = np.zeros(0, np.int64)

    def copy_into(self, child: Translations, caches: list[SharedFile]) -> None:
        """Let a forked child, whose memory holds copies of the files, have the same."""
        child.gadget, child.resume, child.refill = self.gadget, self.resume, self.refill
        child._stops = self._stops.copy()
        child.grounds = [mine.fork(file) for mine, file in zip(self.grounds, caches, strict=True)]
        files = {
            mine.file.base: theirs.file for mine, theirs in zip(self.grounds, child.grounds, strict=True)
        }
        child.caches = self._copied(self.caches, child, files, child._stops)
        child.cells = self.cells.copy()
        child.unrolled = self.unrolled.copy()
        if self.dropped is not None:
            old = self.dropped
            stops = old.stops.copy()
            caches_ = self._copied(old.caches, child, files, stops)
            child.dropped = Dropped(caches_, stops, old.exits.copy(), old.starts.copy(), old.cells.copy())
        child.waited = self.waited.copy()
        child.bytes = self.bytes
        child.slots = self.slots.copy()
        child.starts = self.starts.copy()
        child.mappings = self.mappings.copy()
        child.exits = self.exits.copy()
        child.lookup = self.lookup.fork(child.memory, child._patch_at)
        child.others = self.others.copy()
        child._restored, child._known = self._restored.copy(), self._known.copy()
        child._blocks = self._blocks.copy()
        child._links = {target: fields.copy() for target, fields in self._links.items()}
        child._reserved = self._reserved.copy()
        child._versions = self._versions.copy()
        child._lengths = self._lengths
        child._live = self._live.copy()

    @staticmethod
    def _copied(
        caches: Caches, child: Translations, files: dict[int, SharedFile], stops: dict[int, Stop]
    ) -> Caches:
        """A forked child's caches."""
        out = Caches()
        for ground in child.grounds:
            out.know(ground.fixed)
        for mine in caches.all:
            cache = mine.fork(files[mine.base])
            cache.recall, cache.stops = child.recall, stops
            out.add(cache)
        return out

    # -- what has been translated

    @property
    def counting(self) -> tuple[Cells, ...]:
        """The generations of counters that may hold counts."""
        dropped = self.dropped
        return (self.cells,) if dropped is None else (dropped.cells, self.cells)

    def block(self, slot: int) -> Block:
        """The block of a slot, which has a copy."""
        return self._copied_in(self.caches, slot)

    def counted_in(self, cell: int) -> Block:
        """The block of a copy that counts in `cell`."""
        slot = self.cells.slot(cell)
        if slot is not None:
            return self.block(slot)
        assert self.dropped is not None
        slot = self.dropped.cells.slot(cell)
        assert slot is not None
        return self._copied_in(self.dropped.caches, slot)

    def _copied_in(self, caches: Caches, slot: int) -> Block:
        """The block of a slot, which has a copy in `caches`."""
        block = self._blocks[slot]
        if block is None:
            cache = next(c for c in caches.all if 0 <= slot - c.first_slot < c.kept)
            assert cache.unit is not None
            block = self.recall(cache, int(cache.unit.row_of[slot - cache.first_slot]))
        assert isinstance(block, Block)
        return block

    def recall(self, cache: Cache, row: int) -> Block:
        """Look into a copy that was put back whole. Emission depends on nothing but the
        code, the flags its successors read, where the copy is, and whether it branches by a table:
        emitting it once more tells where everything is."""
        unit, module = cache.unit, cache.module
        assert unit is not None
        assert module is not None
        rank, start = int(unit.ranks[row]), cache.starts[row]
        own = cache.first_slot + rank
        slot = cache.first_slot + int(unit.counted[row])
        pc, code, _ = unit.source(row)
        pc += module.start
        live = int(unit.live[row])
        source = self.reader.decode(self.backend.text(pc, code), pc)
        cell, size = cache.first_cell + rank, int(unit.sizes[row])
        details = self.emitter.emit(source, start, cell, lambda _: live, Check.NEVER)
        if len(details.code) != size:
            details = self.emitter.emit(source, start, cell, lambda _: live, Check.NEVER, None, start)
        if len(details.code) != size:
            raise RuntimeError(f"the translation kept for {module.path} is not what its code gives")
        cold = cache.colds[row] if cache.colds else 0
        block = cache.blocks[row] = Block(source, slot, start, details, cold, own)
        if self._blocks[own] is None:
            self._blocks[own] = block
        self._note_stops(cache, block, Check.NEVER)
        return block

    def stop_at(self, address: int) -> Stop | None:
        """What the int3 at a cache address is for, None if it is none of livepro's stops."""
        stop = self._stops.get(address)
        if stop is None and (self.waited or self.dropped is not None):
            stop = self._former_stop(address)
        if stop is None and self.locate(address) is not None:
            stop = self._stops.get(address)  # a copy put back, looked into just now
            if stop is None and self.dropped is not None:
                stop = self.dropped.stop_at(address)
        return stop

    def _former_stop(self, address: int) -> Stop | None:
        for waited in self.waited.values():
            if waited.at == address:
                return waited.stop
        return None if self.dropped is None else self.dropped.stop_at(address)

    def write_down(self, store: BlockStore, slots: npt.NDArray[np.int64]) -> dict[int, int]:
        """Enter the blocks that count in `slots` (ascending) in a store; returns the rows by slot,
        which ascend together."""
        rows: dict[int, int] = {}
        behind = 0
        for restored in (*self._restored, None):
            first = len(self.starts) if restored is None else restored.first
            for slot in slots[(slots >= behind) & (slots < first)].tolist():
                rows[slot] = store.append(*self.parts(slot), self.mappings[slot])
            if restored is None:
                break
            unit, module = restored.unit, restored.module
            behind = first + len(unit)
            mine = slots[(slots >= first) & (slots < behind)]
            pcs, codes, steps, kinds = unit.rows(unit.row_of[mine - first])
            start = module.start
            row = store.extend([pc + start for pc in pcs], codes, steps, module, kinds, unit.instructions())
            rows.update(zip(mine.tolist(), range(row, row + len(mine)), strict=True))
        return rows

    def parts(self, slot: int) -> tuple[int, bytes, bytes]:
        """The address and bytes of the block of a slot, and the sizes of its instructions."""
        block = self._blocks[slot]
        if isinstance(block, Former):
            return block
        if block is not None:
            return block.source.pc, block.source.code, block.source.steps()
        first, unit, module = next(r for r in self._restored if 0 <= slot - r.first < len(r.unit))
        (pc,), (code,), (steps,), _ = unit.rows(unit.row_of[[slot - first]])
        return pc + module.start, code, steps

    def find(self, pc: int) -> Block | None:
        """The valid translation of `pc`, if there is one."""
        slot = self.slots.get(pc)
        return None if slot is None else self.block(slot)

    def lengths(self) -> npt.NDArray[np.int64]:
        """Instructions of each slot's block (int64)."""
        with self._counting:
            return self._all_lengths()

    def _all_lengths(self) -> npt.NDArray[np.int64]:
        known = len(self._lengths)
        if known < len(self._blocks):
            more = [_length(block) for block in self._blocks[known:] if block is not None]
            self._lengths = np.concatenate((self._lengths, np.array(more, np.int64)))
        return self._lengths

    def executed(self, counts: npt.NDArray[np.int64]) -> None:
        """Take note of how often a thread has executed each block (int64, by slot)."""
        counts = counts.copy()
        counts[: len(self._executions)] += self._executions
        self._executions = counts

    def executions(self) -> npt.NDArray[np.int64]:
        """How often each block has been executed, as far as noted (int64, by slot)."""
        return np.pad(self._executions, (0, len(self.starts) - len(self._executions)))

    def add_restored(self, cache: Cache) -> None:
        """Give slots and cells to the blocks of `cache.unit`, whose copies are in place."""
        unit, module = cache.unit, cache.module
        assert unit is not None
        assert module is not None
        first, count = cache.first_slot, len(unit)
        self._restored.append(Restored(first, unit, module))
        cell = self.cells.take_all(first, count)
        if self.refill:
            self.memory.note_lengths(cell, unit.lengths[unit.row_of], self.cells.range)
        starts = unit.starts.astype(np.int64) + cache.base
        further = unit.counted != unit.ranks
        self.unrolled.add((unit.ranks[further] + first).tolist(), (unit.counted[further] + first).tolist())
        pcs = (unit.pcs[~further].astype(np.int64) + module.start).tolist()
        self.slots.update(zip(pcs, (unit.ranks[~further] + first).tolist(), strict=True))
        self.starts += starts[unit.row_of].tolist()
        self.mappings += [module] * count
        nothing: list[Block | None] = [None] * count
        with self._counting:
            self._lengths = np.concatenate((self._all_lengths(), unit.lengths[unit.row_of].astype(np.int64)))
            self._blocks += nothing
        cache.starts = starts.tolist()
        cache.colds = (unit.colds.astype(np.int64) + cache.base).tolist()
        cache.blocks = nothing.copy()
        for target in [t for t in self._links if cache.serves(t)]:
            if target in self.slots:
                self._publish(target)

    def locate(self, address: int) -> Place | None:
        """Where a cache address is in the program, None for an address that is no copy's."""
        cache = self.caches.at(address)
        place = None if cache is None else cache.locate(address)
        if place is None and self.waited:
            found = (waited.locate(address) for waited in self.waited.values())
            place = next((p for p in found if p is not None), None)
        if place is None and self.dropped is not None:
            place = self.dropped.locate(address)
        return place

    # -- changing what is there

    def _publish(self, pc: int) -> None:
        """Let the branches that wait for the block at `pc` lead to it."""
        slot = self.slots[pc]
        start = self.starts[slot]
        for field in self._links.get(pc, ()):
            self._patch(self.cache_at(field), field, start)
        cache = self.cache_at(start)
        for field in (*cache.links.get(pc, ()), *cache.kept_links(pc)):
            self._patch(cache, field, start)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Meanwhile counts are moved from one place to another: who reads them live must ask again."""
        assert self.epoch % 2 == 0
        self.epoch += 1
        try:
            yield
        finally:
            self.epoch += 1

    def _note_stops(self, cache: Cache, block: Block, check: Check) -> None:
        """Remember what the stops in a copy are for."""
        stops = cache.stops
        source, details, at = block.source, block.details, block.start
        for offset, index, behind in details.natives:
            counted = offset >= block.counted
            encoding = source.code[source.offsets[index] : source.offsets[index + 1]]
            raises = self.backend.raises_trap(encoding)
            stops[at + offset] = Stop("native", block, 0, index, at + behind, counted, raises)
        changed = None
        for offset, index in details.changes:
            counted = offset >= block.counted
            if changed is None or (changed.index, changed.counted) != (index, counted):
                changed = Stop("changed", block, 0, index, 0, counted)
            stops[at + offset] = changed
        if check is not Check.NEVER and block.own == block.slot:  # the first copy leads to the others
            self._versions[source.pc, source.code] = block
        if details.budget is not None:
            stop, resume = details.budget
            stops[at + stop] = Stop("budget", block, resume=at + resume)
        if details.full is not None:
            stop, resume = details.full
            stops[at + stop] = Stop("full", block, resume=at + resume)
        if details.cold is not None:
            at = block.cold + details.cold.stop
            stops[at] = Stop("budget", block, resume=at + 1)
        for stop, resume, slot in details.more_budgets:
            stops[at + stop] = Stop("budget", self.block(slot), resume=at + resume)


def _length(block: Block | Former) -> int:
    return len(block.sizes) if isinstance(block, Former) else len(block.source.facts)
