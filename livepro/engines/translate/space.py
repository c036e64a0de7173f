"""The translated code of one address space: caches, blocks, links, lookup table.

Everything here is addresses and bytes in the shared memory; threads and
signals are the engine's business.
"""

from __future__ import annotations

from livepro.engines.translate.backend import Backend, Emitter, Owed, Reader
from livepro.engines.translate.cache import Block, Cache
from livepro.engines.translate.counters import HALF
from livepro.engines.translate.emitted import Check, Field, Landing
from livepro.engines.translate.generated import GeneratedCode
from livepro.engines.translate.generations import Former
from livepro.engines.translate.memory import SharedFile, ThreadAreas
from livepro.engines.translate.source import SourceBlock
from livepro.engines.translate.tables import TabledTranslations
from livepro.engines.translate.text import check_for
from livepro.engines.translate.unrolled import COPIES
from livepro.errors import LiveproError
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

_CHAIN = 6  # blocks laid out in a row at a miss
EAGER = 10  # blocks translated at a miss, besides


class CodeSpace(TabledTranslations):
    """Translates the code of one address space on demand."""

    def __init__(
        self, process: TracedProcess, memory: ThreadAreas, backend: Backend, reader: Reader, emitter: Emitter
    ) -> None:
        super().__init__(process, memory, backend, reader, emitter)
        self._mapping: Mapping | None = None
        self.generated = GeneratedCode(process, self.forget)
        self.handlers: dict[int, int] = {}
        self._entries: dict[int, int] = {}
        self._relanded: dict[int, tuple[int, int]] = {}

    def fork(self, process: TracedProcess, memory: ThreadAreas, caches: list[SharedFile]) -> CodeSpace:
        """The same translations in a forked child, whose memory holds copies of the files."""
        child = CodeSpace(process, memory, self.backend, self.reader, self.emitter)
        self.copy_into(child, caches)
        child.limits = self.limits
        child.generated = self.generated.fork(process, child.forget)
        child.handlers, child._entries = self.handlers.copy(), self._entries.copy()
        child.region, child._covered = self.region, self._covered.copy()
        child._tables = self._tables.copy()
        child._unlanded, child._relanded = self._unlanded.copy(), self._relanded.copy()
        child._former = {pc: blocks.copy() for pc, blocks in self._former.items()}
        return child

    def renew(self) -> None:
        super().renew()
        self._queue, self._returns, self._urgent = [], [], []
        self._mapping = None
        self._relanded = {}
        for handler, entry in self._entries.items():
            fixed = self.fixed_at(entry)
            self._exit(fixed, entry + len(self.backend.jump) - 4, handler)
        self._queue.clear()

    # -- translating

    def translate(self, pc: int, *, landing: bool = False, eager: int = EAGER) -> int | None:
        """Translate the block at `pc` and, eagerly, likely successors (so many at most). Returns
        where its copy starts; None when its first instruction cannot be read or
        decoded. `landing` enters it in the lookup table."""
        self.text.look_again()
        self.generated.look_again()
        landings = self.lookup.landings
        again = pc in self._unlanded
        slot = self.slots.get(pc)
        if slot is None:
            block = self._chain(pc, landing and not again, likely=True)
            if block is None:
                return None
            slot = block.slot
        if again:
            self._land_again(pc)
        elif landing and pc not in landings:
            self._land(pc, likely=True)
        while self._urgent:
            target = self._urgent.pop()
            if target not in self.slots:
                self._chain(target, False, likely=False)
        budget = eager
        while budget and (self._returns or self._queue):
            if self._returns:
                target, lands = self._returns.pop(), True
            else:
                target, lands = self._queue.pop(), False
            if target in self.slots:
                if lands and target not in landings:
                    self._land(target, likely=False)
                continue
            budget -= 1
            self._chain(target, lands, likely=False)
        self._queue.clear()
        self._returns.clear()
        return self.starts[slot]

    def _chain(self, pc: int, landing: bool, *, likely: bool) -> Block | None:
        """Lay out the block at `pc` and, behind it, those that follow when no branch is taken.

        Other threads run meanwhile: nothing may lead into the chain before all of
        it is written.
        """
        cache = self.cache_for(pc)
        if cache is None or len(self.cells) + _CHAIN * COPIES > HALF:
            return None  # no counter left: the engine steps what it cannot translate
        source = self.text.decode(pc)
        if source is None:
            return None
        revived = self._revive(source)
        if revived is not None:
            return revived
        at = cache.hot = (cache.hot + 15) & -16
        begin = at
        if landing:
            check = self.emitter.landing(pc)
            self._write(cache, at, check.code)
            at += len(check.code)
        first = block = self._place(cache, at, source)
        chain = [block]
        while (follows := block.details.falls) is not None:
            at += block.size
            within = block.details.within
            rest = (
                []
                if within is None or self._check is not Check.NEVER
                else self.reader.rest_of_sequence(self.text.decode, follows)
            )
            if rest:
                for source in rest:
                    assert within is not None
                    block = self._place(cache, at, source, within)
                    within = block.details.within
                    at += block.size
                at -= block.size
                continue
            ends = len(chain) == _CHAIN or follows in self.slots or cache.hot >= cache.hot_end
            # Code of another mapping has a cache of its own, or will have: a module's copies lead
            # to each other.
            mapping = self._mapping
            ends = ends or mapping is None or not mapping.start <= follows < mapping.end
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
            self._put_aside(cache, block)
        self._show(cache)
        for block in chain:
            self._publish(block.source.pc)
            self._unroll(cache, block)
        if landing:
            self._enter(cache, begin, check, pc, likely=likely)
        return first

    def _place(self, cache: Cache, at: int, source: SourceBlock, owed: Owed | None = None) -> Block:
        pc = source.pc
        slot = self._slot(source, owed)
        mapping = self._mapping
        if mapping is None or not mapping.start <= pc < mapping.end:
            mapping = self._mapping = self.process.space.find(pc)
            self._check = check_for(mapping)
        block = self._copy(cache, at, source, slot, slot, owed)
        if slot == len(self._blocks):
            self._number(block, mapping)
        elif owed is None or isinstance(self._blocks[slot], Former):
            self.starts[slot] = at
            self._blocks[slot] = block
        if self._check is Check.ENTRY:
            self.generated.note(pc, slot)
        if owed is None:
            self.slots[pc] = slot
            if self.region is not None and self.region.armed(self.process, pc):
                self.arm(pc)
        self._lead_on(cache, block)
        return block

    def _slot(self, source: SourceBlock, owed: Owed | None) -> int:
        """The slot for a copy: for one within an exclusive sequence the same that a copy
        which can be entered has, or will have."""
        key = source.pc, source.code
        if owed is None:
            slot = self._reserved.pop(key, None)
            return self._numbered(source) if slot is None else slot
        slot = self.slots.get(source.pc)
        if slot is None:
            slot = self._reserved.get(key)
        if slot is None:
            slot = self._reserved[key] = self._numbered(source)
        return slot

    def drop(self, start: int, end: int) -> None:
        super().drop(start, end)
        self._mapping = None

    # -- the lookup table

    def _land(self, pc: int, *, likely: bool) -> int:
        """Enter the block at `pc` in the lookup table. Returns the field that leads to it."""
        start = self.starts[self.slots[pc]]
        cache = self.cache_at(start)
        check = self.emitter.landing(pc)
        jump = self.backend.jump
        at = cache.cold + 15 & -16
        text = check.code + self.emitter.padding(at + len(check.code), len(jump) - 4) + jump
        at = self._cold(cache, text, 16)
        field = at + len(text) - 4
        self._patch(cache, field, start)
        self._enter(cache, at, check, pc, likely=likely)
        return field

    def _land_again(self, pc: int) -> None:
        """The table leads to an earlier copy of the block at `pc`, which is in force no longer."""
        self._unlanded.discard(pc)
        known = self._relanded.get(pc)
        if known is None:
            field = self._land(pc, likely=True)  # before the earlier one
            self._relanded[pc] = self.lookup.landings[pc], field
        else:
            self.lookup.landings[pc], field = known
            self._patch_at(field, self.starts[self.slots[pc]])

    def entry(self, handler: int) -> int:
        """An address that leads to the program's `handler` for as long as there is the space;
        `handlers` has it by that address."""
        entry = self._entries.get(handler)
        if entry is None:
            jump = self.backend.jump
            cache = self.fixed_near(handler)
            # Of one instruction, its field aligned: a thread is at its start, or not in it.
            entry = (cache.hot + len(jump) + 3 & -4) - len(jump)
            if entry + len(jump) > cache.base + cache.middle:
                raise LiveproError("The program has too many signal handlers.", "Use `--engine block`.")
            self._write(cache, entry, jump)
            cache.hot = entry + len(jump)
            self._entries[handler] = entry
            self.handlers[entry] = handler
            self._exit(cache, cache.hot - 4, handler)
        return entry

    def _enter(self, cache: Cache, at: int, landing: Landing, pc: int, *, likely: bool) -> None:
        """Enter a landing for `pc` that is at `at`."""
        otherwise = at + landing.otherwise
        cache.record.fields[Field.NEGATED].append(at + landing.target)
        cache.record.landings.append((pc, at, otherwise, likely))
        self.lookup.enter(at, otherwise, pc, likely=likely)
