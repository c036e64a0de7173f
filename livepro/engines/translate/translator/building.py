"""Basic blocks of the program made into fragments, and those that are likely to follow along with them."""

from __future__ import annotations

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.landings import Landings
from livepro.engines.translate.codecache.linker import Linker, Pending
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.engines.translate.coherence.invalidating import Invalidator
from livepro.engines.translate.coherence.region_stops import RegionStops
from livepro.engines.translate.translator.backend import Backend, Emitter, Owed, Reader
from livepro.engines.translate.translator.compiled import CompiledBuilder
from livepro.engines.translate.translator.emitted import Check, Emitted
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.text import ProgramText, check_for
from livepro.engines.translate.translator.unrolled import COPIES
from livepro.engines.translate.translator.writing import FragmentWriter, aside_of
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

# Measured with nothing kept (CPython's start, ls, gzip, a JVM's start), all translated in Python: EAGER 0
# takes 18 % longer, 40 8 %, of 3 to 20 none is best for all; of _CHAIN 1 takes 2 % longer, 3 to 12 are alike.
# By compiled code EAGER 6, 10 and 20 make 4,600, 4,000 and 3,500 stops of CPython's start and 57,000, 60,000
# and 65,000 blocks; of rustc 32,000, 28,000 and 25,000 stops and 635,000, 705,000 and 837,000 blocks, in as
# much time; blocks that nobody executes are in the way when they have been kept. (What calls return to is not
# counted there.)
_CHAIN = 6  # blocks laid out in a row at a miss
EAGER = 10  # blocks translated at a miss, besides


class BlockBuilder:
    """Translates the code of one process on demand: says which fragments are written, and where."""

    def __init__(
        self,
        process: TracedProcess,
        text: ProgramText,
        generated: GeneratedCode,
        memory: CacheMemory,
        registry: BlockRegistry,
        linker: Linker,
        landings: Landings,
        writer: FragmentWriter,
        invalidator: Invalidator,
        regions: RegionStops,
        pending: Pending,
        backend: Backend,
        reader: Reader,
        emitter: Emitter,
        compiled: CompiledBuilder,
    ) -> None:
        self._process = process
        self._text = text
        self._generated = generated
        self._memory = memory
        self._registry = registry
        self._linker = linker
        self._landings = landings
        self._writer = writer
        self._invalidator = invalidator
        self._regions = regions
        self._pending = pending
        self._jump = backend.jump
        self._rest_of_sequence = reader.rest_of_sequence
        self._emitter = emitter
        self._compiled = compiled
        self._mapping: Mapping | None = None
        self._check = Check.NEVER

    @property
    def compiled(self) -> int:
        """Blocks that compiled code has made."""
        return self._compiled.blocks

    def forget_mapping(self) -> None:
        """The process's mappings have changed."""
        self._mapping = None

    def translate(self, pc: int, *, landing: bool = False, eager: int = EAGER) -> int | None:
        """Translate the block at `pc` and, eagerly, likely successors (so many at most). Returns
        where its fragment starts; None when its first instruction cannot be read or
        decoded. `landing` enters it in the lookup table."""
        self._look_again()
        slots, landings, pending = self._registry.slots, self._landings, self._pending
        again = landings.withdrawn(pc)
        slot = slots.get(pc)
        if slot is None:
            if not self._make(pc, landing and not again, likely=True, eager=eager):
                return None
            slot = slots[pc]
        if again:
            landings.land_again(pc)
        elif landing and not landings.known(pc):
            landings.land(pc, likely=True)
        while pending.urgent:
            target = pending.urgent.pop()
            if target not in slots:
                self._make(target, False, likely=False)
        self.follow(self._memory.caches.of_module(pc) or self._memory.cache_for(pc), eager)
        return self._registry.starts[slot]

    def follow(self, cache: Cache | None, eager: int) -> None:
        """Translate what is likely to follow what has been translated for a thread in `cache`, so many blocks
        at most."""
        slots, landings, pending = self._registry.slots, self._landings, self._pending
        if cache is not None and eager:
            self._compiled.follow(cache, eager)
        budget = eager
        while budget and (pending.returns or pending.successors):
            if pending.returns:
                target, lands = pending.returns.pop(), True
            else:
                target, lands = pending.successors.pop(), False
            if target in slots:
                if lands and not landings.known(target):
                    landings.land(target, likely=False)
                continue
            budget -= 1
            self._make(target, lands, likely=False)
        pending.successors.clear()
        pending.returns.clear()

    def uncopied(self, pc: int) -> Fragment | None:
        """The block at `pc`, to be counted though it has no fragment; None where there is nothing to
        execute."""
        registry = self._registry
        block = registry.find(pc)
        if block is not None:
            return block
        mapping = self._process.space.find(pc)
        if mapping is None or not mapping.readable:
            return None  # as the vsyscall page
        self._look_again()
        source = self._text.decode(pc)
        if source is None:
            return None
        slot = registry.numbered(source)
        if not registry.has(slot):
            registry.enter_uncopied(source, mapping)
        return Fragment(source, slot, 0, Emitted())

    def _look_again(self) -> None:
        self._text.look_again()
        self._generated.look_again()

    def _make(self, pc: int, landing: bool, *, likely: bool, eager: int = 0) -> bool:
        """Have the block at `pc` translated, unless an earlier fragment of it is right: by compiled code if
        it is plain (and then with so many likely successors). False where there is none."""
        cache = self._memory.cache_for(pc)
        if self._invalidator.revive(pc):
            return True
        if cache is not None and self._compiled.translate(
            cache, pc, lands=landing, likely=likely, eager=eager
        ):
            return True
        return self._chain(pc, landing, likely=likely) is not None

    def _chain(self, pc: int, landing: bool, *, likely: bool) -> Fragment | None:
        """Lay out the block at `pc` and, behind it, those that follow when no branch is taken.

        Other threads run meanwhile: nothing may lead into the chain before all of
        it is written.
        """
        memory = self._memory
        cache = memory.cache_for(pc)
        if cache is None or self._registry.cells.free < _CHAIN * COPIES:
            return None  # no counter left: the engine steps what it cannot translate
        source = self._decode(cache, pc)
        if source is None:
            return None
        at = cache.hot = (cache.hot + 15) & -16
        begin = at
        if landing:
            check = self._emitter.landing(pc)
            memory.write(cache, at, check.code)
            at += len(check.code)
        chain = self._lay_out(cache, at, source)
        for block in chain:
            self._writer.put_aside(cache, block)
        memory.show(cache)
        for block in chain:
            self._linker.publish(block.source.pc)
            self._writer.unroll(cache, block, self._check)
        if landing:
            self._landings.enter(cache, begin, check, pc, likely=likely)
        return chain[0]

    def _lay_out(self, cache: Cache, at: int, source: SourceBlock) -> list[Fragment]:
        """Write the fragment of a block at `at` in `cache`, and behind it those that it falls through to."""
        # Of a module that compiled code translates only what is left to this here.
        most = _CHAIN if cache.compiled is None or not cache.covers(source.pc) else 1
        block = self._place(cache, at, source)
        chain = [block]
        while (follows := block.details.falls) is not None:
            at += block.size
            within = block.details.within
            rest = (
                []
                if within is None or self._check is not Check.NEVER
                else self._rest_of_sequence(self._text.decode, follows)
            )
            if rest:
                for source in rest:
                    assert within is not None
                    block = self._place(cache, at, source, within)
                    within = block.details.within
                    at += block.size
                at -= block.size
                continue
            full = cache.hot + aside_of(chain) >= cache.hot_end or not cache.room
            ends = full or len(chain) == most or follows in self._registry.slots
            # Code of another mapping has a cache of its own, or will have: a module's fragments lead
            # to each other.
            mapping = self._mapping
            ends = ends or mapping is None or not mapping.start <= follows < mapping.end
            following = None if ends else self._decode(cache, follows)
            if following is None:
                # The chain goes on elsewhere.
                jump = self._jump
                end = self._emitter.padding(at, len(jump) - 4) + jump
                self._memory.write(cache, at, end)
                cache.hot = at + len(end)
                self._linker.exit(cache, cache.hot - 4, follows)
                break
            block = self._place(cache, at, following)
            chain.append(block)
        return chain

    def _decode(self, cache: Cache, pc: int) -> SourceBlock | None:
        """The block at `pc`, as much of it as has room in one fragment."""
        source = self._text.decode(pc)
        if source is None:
            return None
        self._mapping_of(pc)
        return self._writer.fitting(cache, source, self._check)

    def _mapping_of(self, pc: int) -> Mapping | None:
        """The mapping that `pc` is in; `_check` is for it."""
        mapping = self._mapping
        if mapping is None or not mapping.start <= pc < mapping.end:
            mapping = self._mapping = self._process.space.find(pc)
            self._check = check_for(mapping)
        return mapping

    def _place(self, cache: Cache, at: int, source: SourceBlock, owed: Owed | None = None) -> Fragment:
        """Write one fragment at `at` in `cache`, within an exclusive sequence if instructions are `owed`."""
        registry, pc = self._registry, source.pc
        slot = registry.slot_for(source, owed)
        mapping = self._mapping_of(pc)
        block = self._writer.write(cache, at, source, slot, slot, self._check, owed)
        if not registry.has(slot):
            registry.enter(block, mapping)
        elif owed is None or registry.is_former(slot):
            registry.enter_again(slot, block)
        if self._check is Check.ENTRY:
            self._generated.note(pc, slot, self._generated.label(pc))
        if owed is None:
            registry.slots[pc] = slot
            if self._regions.armed(pc):
                self._regions.arm(pc)
        self._writer.lead_on(cache, block, self._check)
        return block
