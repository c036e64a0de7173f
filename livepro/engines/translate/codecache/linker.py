"""The direct branches between fragments: each is linked to the fragment it leads to, or to a stub."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as made

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.translator.backend import Backend

_SUCCEEDED = 8  # superseded fragments of one address that lead straight to the latest, not one to the next


@dataclass
class Pending:
    """The program's addresses that it pays to translate next: successors that branches wait for,
    `returns` of calls, and those that are `urgent`, which must be translated along."""

    successors: list[int] = made(default_factory=list)
    returns: list[int] = made(default_factory=list)
    urgent: list[int] = made(default_factory=list)

    def clear(self) -> None:
        """Nothing is."""
        self.successors.clear()
        self.returns.clear()
        self.urgent.clear()


class Linker:
    """Links the branches of one code cache.

    `exits` leads from the address of a stub to the program's address that is yet to be translated.
    """

    def __init__(
        self, memory: CacheMemory, registry: BlockRegistry, pending: Pending, backend: Backend
    ) -> None:
        self.exits: dict[int, int] = {}
        self._memory = memory
        self._registry = registry
        self._pending = pending
        self._link = backend.link
        self._stop = backend.stop
        self._links: dict[int, list[int]] = {}
        self._superseded: dict[int, deque[Fragment]] = {}

    def fork_into(self, child: Linker) -> None:
        """Let a forked child's linker know the same."""
        child.exits = self.exits.copy()
        child._links = {target: fields.copy() for target, fields in self._links.items()}
        child._superseded = {pc: blocks.copy() for pc, blocks in self._superseded.items()}

    def exit(self, cache: Cache, field: int, target: int, *, eager: bool = True) -> None:
        """Link the direct branch whose field is at `field` in `cache` to the program's address `target`;
        `eager`: if it has no fragment, it is to be translated soon."""
        if cache.module is not None:
            cache.record.links.append((field, target))
        self._lead(cache, field, target, eager=eager)

    def exit_again(self, cache: Cache, fields: Iterable[int], targets: Iterable[int]) -> None:
        """Link branches that were put back into a module's cache and lead out of the module: what was there
        when they were kept may not be there, or elsewhere."""
        for field, target in zip(fields, targets, strict=True):
            self._lead(cache, field, target, eager=False)

    def _lead(self, cache: Cache, field: int, target: int, *, eager: bool) -> None:
        memory, links_of = self._memory, cache.links if cache.serves(target) else self._links
        links = links_of.get(target)
        if links is None:
            links_of[target] = [field]
        else:
            links.append(field)
        slot = self._registry.slots.get(target)
        if slot is not None:
            memory.patch(cache, field, self._registry.starts[slot])
            return
        if eager:
            self._pending.successors.append(target)
        stub = cache.stubs.get(target)
        if stub is None:
            stub = cache.cold
            cache.cold += len(self._stop)
            cache.map[stub - cache.base : cache.cold - cache.base] = self._stop
            memory.bytes += len(self._stop)
            cache.stubs[target] = stub
            self.exits[stub] = target
        memory.patch(cache, field, stub)

    def publish(self, pc: int) -> None:
        """Let the branches that wait for the fragment at `pc`, and the fragments that it supersedes, lead
        to it."""
        memory = self._memory
        start = self._registry.starts[self._registry.slots[pc]]
        for field in self._links.get(pc, ()):
            memory.patch(memory.cache_at(field), field, start)
        cache = memory.cache_at(start)
        for field in (*cache.links.get(pc, ()), *cache.kept_links(pc), *cache.compiled_links(pc)):
            memory.patch(cache, field, start)
        for block in self._superseded.get(pc, ()):
            # Its stop stays known: another thread may have run into it before, and be heard of after.
            skip = block.details.skip
            assert skip is not None
            memory.patch_at(block.start + skip, start)
            if skip >= len(self._stop):
                memory.let_in(block)

    def lead_out(self, cache: Cache, field: int, target: int) -> None:
        """Link a branch that leads out of its module and to a stub, as long as there is nothing better."""
        self._links.setdefault(target, []).append(field)
        slot = self._registry.slots.get(target)
        if slot is None:
            self._pending.successors.append(target)
        else:
            self._memory.patch(cache, field, self._registry.starts[slot])

    def publish_outside(self, pcs: Iterable[int]) -> None:
        """Let the branches of other modules that wait for new fragments lead to them, and the fragments that
        they supersede."""
        if self._links or self._superseded:
            for pc in pcs:
                if pc in self._links or pc in self._superseded:
                    self.publish(pc)

    def publish_restored(self, cache: Cache) -> None:
        """The same for all fragments that have been put back into a module's cache."""
        for target in [t for t in self._links if cache.serves(t)]:
            if target in self._registry.slots:
                self.publish(target)

    def supersede(self, block: Fragment) -> None:
        """A fragment of code that may change is in force no longer: it will lead to the next one."""
        self._superseded.setdefault(block.source.pc, deque(maxlen=_SUCCEEDED)).append(block)

    def reinstate(self, block: Fragment) -> None:
        """A superseded fragment is to be in force again."""
        superseded = self._superseded.get(block.source.pc)
        if superseded is not None and block in superseded:
            superseded.remove(block)
        cache, skip = self._memory.cache_at(block.start), block.details.skip
        assert skip is not None
        self._link(cache.map, block.start - cache.base + skip, block.compares)

    def flush(self) -> None:
        """Forget all branches but those that outlive generations."""
        self._links, self._superseded = {}, {}
        self.exits = {stub: pc for g in self._memory.files for pc, stub in g.fixed.stubs.items()}
