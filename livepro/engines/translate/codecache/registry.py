"""The blocks of one code cache: by counter slot what they are, by address which slot is in force.

Blocks that were put back from kept translations (`keeping`) are looked into only
when somebody asks what they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache, Caches
from livepro.engines.translate.codecache.compiled_code import LENGTH, PC, START
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.recalling import Recaller, Restored
from livepro.engines.translate.codecache.stop_reasons import Stop, stops_of
from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.engines.translate.counting.counters import PARTS, Cells
from livepro.engines.translate.counting.sparse import Sparse
from livepro.engines.translate.flush.former import FormerSlots
from livepro.engines.translate.flush.generations import EvictedBlock
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.translator.backend import Backend, Emitter, Owed, Reader
from livepro.engines.translate.translator.emitted import Check
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.unrolled import Unrolled
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

Array = npt.NDArray[np.int64]


class BlockRegistry:
    """All blocks that one code cache has or had fragments of.

    `slots` leads from the program's address of a block to the slot of the fragment in force; by slot there
    are `starts` of fragments, `mappings` and blocks (`block`); `restored` are those put back. `cells` are the
    counters in use, `unrolled` the slots of further fragments of one block. `versions` are fragments of code
    that may change, by address and bytes. `epoch` is odd while counts are moved from one place to another
    (`moving`).
    """

    def __init__(
        self,
        process: TracedProcess,
        areas: ThreadAreas,
        memory: CacheMemory,
        generated: GeneratedCode,
        backend: Backend,
        reader: Reader,
        emitter: Emitter,
    ) -> None:
        self.cells = Cells(PARTS[0], original=True)
        self.unrolled = Unrolled()
        self.epoch = 0
        self.slots: dict[int, int] = {}
        self.starts: list[int] = []
        self.mappings: list[Mapping | None] = []
        self.versions: dict[int, dict[bytes, Fragment]] = {}
        self._areas = areas
        self._memory = memory
        self._generated = generated
        self._backend = backend
        self._recaller = Recaller(backend, reader, emitter)
        self._blocks: list[Fragment | EvictedBlock | int | None] = []
        self.restored: list[Restored] = []
        self._former = FormerSlots(process, generated)
        self._reserved: dict[tuple[int, bytes], int] = {}
        self._lengths = np.zeros(0, np.int64)
        self._counting = Lock()  # other threads ask for lengths, too
        self._executions = np.zeros(0, np.int64)

    def fork_into(self, child: BlockRegistry) -> None:
        """Let a forked child's registry know the same."""
        child.cells = self.cells.copy()
        child.unrolled = self.unrolled.copy()
        child.slots = self.slots.copy()
        child.starts = self.starts.copy()
        child.mappings = self.mappings.copy()
        child.versions = {pc: versions.copy() for pc, versions in self.versions.items()}
        child.restored = self.restored.copy()
        self._former.fork_into(child._former)
        child._blocks = self._blocks.copy()
        child._reserved = self._reserved.copy()
        child._lengths = self._lengths

    # -- what there is

    @property
    def counting(self) -> tuple[Cells, ...]:
        """The generations of counters that may hold counts."""
        flushed = self._memory.flushed
        return (self.cells,) if flushed is None else (flushed.cells, self.cells)

    @property
    def put_back(self) -> int:
        """Blocks whose fragments were put back from earlier runs."""
        return sum(len(restored.persisted) for restored in self.restored)

    def find(self, pc: int) -> Fragment | None:
        """The fragment in force for the program's address `pc`, None if there is none."""
        slot = self.slots.get(pc)
        return None if slot is None else self.block(slot)

    def block(self, slot: int) -> Fragment:
        """The block of a slot, which has a fragment."""
        return self._copied_in(self._memory.caches, slot)

    def known(self, slot: int) -> Fragment | None:
        """The block of a slot, if it has a fragment that has been looked into."""
        block = self._blocks[slot]
        return block if isinstance(block, Fragment) else None

    def has(self, slot: int) -> bool:
        """Whether there is a block with this slot yet."""
        return slot < len(self._blocks)

    def further_starts(self, slot: int) -> list[int]:
        """Where the further fragments of a block are."""
        return [self.starts[own] for own in self.unrolled.of(slot) if self.cells.of(own) is not None]

    def counted_in(self, cell: int) -> Fragment:
        """The block of a fragment that counts in `cell`."""
        slot = self.cells.slot(cell)
        if slot is not None:
            return self.block(slot)
        flushed = self._memory.flushed
        assert flushed is not None
        slot = flushed.cells.slot(cell)
        assert slot is not None
        return self._copied_in(flushed.caches, slot)

    def _copied_in(self, caches: Caches, slot: int) -> Fragment:
        """The block of a slot, which has a copy in `caches`."""
        block = self._blocks[slot]
        if isinstance(block, int):
            start = self.starts[slot]
            made = self._memory.made_at(start)
            block = self.recall(made, bisect_right(made.starts, start) - 1)
        if block is None:
            cache = next(c for c in caches.all if 0 <= slot - c.first_slot < c.kept)
            assert cache.persisted is not None
            block = self.recall(cache, int(cache.persisted.row_of[slot - cache.first_slot]))
        assert isinstance(block, Fragment)
        return block

    def recall(self, cache: Cache, row: int) -> Fragment:
        """Look into a fragment that was put back, or that compiled code has made."""
        block = cache.blocks[row] = self._recaller.fragment(cache, row, self.block)
        known = self._blocks[block.own]
        if known is None or (isinstance(known, int) and self.starts[block.own] == block.start):
            self._blocks[block.own] = block
        self.note_stops(cache, block, Check.NEVER if block.details.aside is None else Check.ENTRY)
        return block

    def unentered(self, cache: Cache, known: npt.NDArray[np.int64]) -> Fragment:
        """A fragment that compiled code has made (see `Recaller.made`) and nobody may have entered: which
        slot it is of is not told (-1)."""
        return self._recaller.made(cache, 0, -1, known)

    def stops_in(self, block: Fragment) -> dict[int, Stop]:
        """The stops in a fragment, by address."""
        return dict(stops_of(block, self._backend.raises_trap, self.block))

    def unlooked(self, slots: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of these blocks have been made by compiled code, and not been looked into since."""
        return np.array([isinstance(self._blocks[slot], int) for slot in slots.tolist()], bool)

    def parts(self, slot: int) -> tuple[int, bytes, bytes]:
        """The address and bytes of the block of a slot, and the sizes of its instructions."""
        block = self._blocks[slot]
        if isinstance(block, EvictedBlock):
            return block
        if isinstance(block, int):
            start = self.starts[slot]
            cache = self._memory.made_at(start)
            return cache.made_parts(bisect_right(cache.starts, start) - 1)
        if block is not None:
            return block.source.pc, block.source.code, block.source.steps()
        first, persisted, module = next(r for r in self.restored if 0 <= slot - r.first < len(r.persisted))
        (pc,), (code,), (steps,), _ = persisted.rows(persisted.row_of[[slot - first]])
        return pc + module.start, code, steps

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

    def executed(self, ran: Sparse) -> None:
        """Take note of how often a thread has executed blocks, each of which is there once."""
        slots, times = ran
        if len(self._executions) < len(self.starts):
            self._executions = self.executions()
        self._executions[slots] += times

    def executions(self) -> npt.NDArray[np.int64]:
        """How often each block has been executed, as far as noted (int64, by slot)."""
        return np.pad(self._executions, (0, len(self.starts) - len(self._executions)))

    # -- entering blocks

    def add_restored(self, cache: Cache) -> None:
        """Give slots and cells to the blocks of `cache.persisted`, whose copies are in place."""
        persisted, module = cache.persisted, cache.module
        assert persisted is not None
        assert module is not None
        first, count = cache.first_slot, len(persisted)
        self.restored.append(Restored(first, persisted, module))
        cell = self.cells.take_all(range(first, first + count))
        if self._memory.refill:
            self._areas.note_lengths(cell, persisted.lengths[persisted.row_of], self.cells.range)
        starts = persisted.starts.astype(np.int64) + cache.base
        further = persisted.counted != persisted.ranks
        self.unrolled.add(
            (persisted.ranks[further] + first).tolist(), (persisted.counted[further] + first).tolist()
        )
        pcs = (persisted.pcs[~further].astype(np.int64) + module.start).tolist()
        self.slots.update(zip(pcs, (persisted.ranks[~further] + first).tolist(), strict=True))
        self.starts += starts[persisted.row_of].tolist()
        self.mappings += [module] * count
        nothing: list[Fragment | None] = [None] * count
        with self._counting:
            self._lengths = np.concatenate(
                (self._all_lengths(), persisted.lengths[persisted.row_of].astype(np.int64))
            )
            self._blocks += nothing
        cache.starts = starts.tolist()
        cache.colds = (persisted.colds.astype(np.int64) + cache.base).tolist()
        cache.blocks = nothing.copy()

    def enter(self, block: Fragment, mapping: Mapping | None) -> None:
        """Enter a block with a new slot, the next one."""
        self.starts.append(block.start)
        self.mappings.append(mapping)
        self._blocks.append(block)

    def enter_compiled(self, cache: Cache, blocks: Array, mappings: Sequence[Mapping | None]) -> Array:
        """Enter blocks of these mappings that compiled code has made (rows of `Batch.blocks`), which count in
        the next cells; returns their slots. What they are is looked into when somebody asks, but for how many
        instructions they have."""
        first = len(self.starts)
        pcs = (blocks[:, PC] + cache.extent[0]).tolist()
        starts, lengths = (blocks[:, START] + cache.base).tolist(), blocks[:, LENGTH].tolist()
        slots: Sequence[int] = range(first, first + len(blocks))
        if self._former:
            slots = self._slots_again(cache, blocks, pcs)
        cell = self.cells.take_all(slots)
        if self._memory.refill:
            self._areas.note_lengths(cell, lengths, self.cells.range)
        self.slots.update(zip(pcs, slots, strict=True))
        if not self._former:
            self.starts += starts
            self.mappings += mappings
            self._blocks += lengths
            return np.array(slots, np.int64)
        for slot, start, length, mapping in zip(slots, starts, lengths, mappings, strict=True):
            if slot < len(self.starts):
                self.starts[slot], self.mappings[slot], self._blocks[slot] = start, mapping, length
            else:
                self.starts.append(start)
                self.mappings.append(mapping)
                self._blocks.append(length)
        return np.array(slots, np.int64)

    def _slots_again(self, cache: Cache, blocks: Array, pcs: list[int]) -> list[int]:
        """The slots of blocks that compiled code has made: those that they had before a flush, else new
        ones."""
        new, slots = len(self.starts), []
        for slot in self._former.slots(pcs, cache.codes_of(blocks), cache.module):
            if slot is None or self.cells.of(slot) is not None:
                slot, new = new, new + 1
            slots.append(slot)
        return slots

    def enter_again(self, slot: int, block: Fragment) -> None:
        """Let a slot that there is already have this fragment."""
        self.starts[slot] = block.start
        self._blocks[slot] = block

    def enter_uncopied(self, source: SourceBlock, mapping: Mapping) -> None:
        """Enter a block that has no fragment with a new slot, the next one."""
        self.starts.append(0)
        self.mappings.append(mapping)
        if self.cells.original:
            self.cells.take(len(self._blocks))
        self._blocks.append(EvictedBlock(source.pc, source.code, source.steps()))

    def is_former(self, slot: int) -> bool:
        """Whether the block of a slot has lost its fragment in a flush."""
        return isinstance(self._blocks[slot], EvictedBlock)

    def slot_for(self, source: SourceBlock, owed: Owed | None) -> int:
        """The slot for a new fragment: for one within an exclusive sequence the same that a fragment
        which can be entered has, or will have."""
        key = source.pc, source.code
        if owed is None:
            slot = self._reserved.pop(key, None)
            return self.numbered(source) if slot is None else slot
        slot = self.slots.get(source.pc)
        if slot is None:
            slot = self._reserved.get(key)
        if slot is None:
            slot = self._reserved[key] = self.numbered(source)
        return slot

    def numbered(self, source: SourceBlock) -> int:
        """The slot of a block: the one that it had before, else a new one."""
        slot = self._former.slot(source.pc, source.code)
        return len(self.starts) if slot is None else slot

    def cell_of(self, slot: int, instructions: int) -> int:
        """The counter for a slot, of a block of so many instructions."""
        cell = self.cells.take(slot)
        if self._memory.refill:
            self._areas.note_lengths(cell, (instructions,), self.cells.range)
        return cell

    def slot_of(self, cell: int) -> int:
        """The slot that a counter in use counts for."""
        slot = self.cells.slot(cell)
        assert slot is not None
        return slot

    # -- a flush

    def remember(self) -> None:
        """Let blocks that will be translated again have the slots that they had."""
        note, mappings = self._former.note, self.mappings
        further = set(self.unrolled.pairs()[0].tolist())
        for cache in self._memory.caches.all:
            for slot, pc, code in cache.all_made():
                if isinstance(self._blocks[slot], int):
                    note(slot, pc, code, mappings[slot])
        for slot in self.cells.slots().tolist():
            block = self._blocks[slot]
            if block is not None and not isinstance(block, int) and slot not in further:
                pc, code, _ = self.parts(slot)
                note(slot, pc, code, mappings[slot])
        for cache in self._memory.caches.all:
            if cache.persisted is not None:
                assert cache.module is not None
                pcs, codes, _, _ = cache.persisted.rows(np.arange(cache.kept))
                start, slots = cache.module.start, (cache.persisted.counted + cache.first_slot).tolist()
                for slot, pc, code in zip(slots, pcs, codes, strict=True):
                    note(slot, pc + start, code, mappings[slot])

    def flush(self) -> None:
        """No fragment is in force any more: new ones count in the other part of the threads' areas."""
        self.cells = self.cells.next
        self.slots, self.versions = {}, {}
        self._reserved = {}

    def give_up(self, cells: Cells) -> None:
        """Keep no more than what they are of the blocks that counted in dropped `cells` and have no
        other fragment."""
        flushed, blocks, of = self._memory.flushed, self._blocks, self.cells.of
        for cache in () if flushed is None else flushed.caches.all:
            for (slot, pc, code), sizes in zip(cache.all_made(), cache.steps_made(), strict=True):
                if isinstance(blocks[slot], int) and of(slot) is None:
                    blocks[slot] = EvictedBlock(pc, code, sizes)
        for slot in cells.slots().tolist():
            block = blocks[slot]
            if isinstance(block, Fragment) and of(slot) is None:
                blocks[slot] = EvictedBlock(*self.parts(slot))

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Meanwhile counts are moved from one place to another: who reads them live must ask again."""
        assert self.epoch % 2 == 0
        self.epoch += 1
        try:
            yield
        finally:
            self.epoch += 1

    def note_stops(self, cache: Cache, block: Fragment, check: Check) -> None:
        """Remember what the stops in a copy are for."""
        cache.stops.update(self.stops_in(block))
        if check is not Check.NEVER and block.own == block.slot:  # the first copy leads to the others
            self.versions.setdefault(block.source.pc, {})[block.source.code] = block


def _length(block: Fragment | EvictedBlock | int) -> int:
    if isinstance(block, int):
        return block
    return len(block.sizes) if isinstance(block, EvictedBlock) else len(block.source.facts)
