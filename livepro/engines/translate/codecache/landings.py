"""The ways into fragments other than direct branches: landings of the lookup table, and handlers' entries."""

from __future__ import annotations

from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.linker import Linker
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.translator.backend import Backend, Emitter
from livepro.engines.translate.translator.emitted import Field, Landing
from livepro.errors import LiveproError


class Landings:
    """Enters fragments in the lookup table of indirect branches (`CacheMemory.lookup`)."""

    def __init__(
        self, memory: CacheMemory, registry: BlockRegistry, backend: Backend, emitter: Emitter
    ) -> None:
        self._memory = memory
        self._registry = registry
        self._backend = backend
        self._emitter = emitter
        self._withdrawn: set[int] = set()
        self._landed_again: dict[int, tuple[int, int]] = {}

    def fork_into(self, child: Landings) -> None:
        """Let a forked child's landings be the same."""
        child._withdrawn, child._landed_again = self._withdrawn.copy(), self._landed_again.copy()

    def known(self, pc: int) -> bool:
        """Whether the table leads to a fragment of `pc`."""
        return pc in self._memory.lookup.landings

    def withdrawn(self, pc: int) -> bool:
        """Whether the table leads to a fragment of `pc` that is in force no longer."""
        return pc in self._withdrawn

    def withdraw(self, pc: int) -> None:
        """The fragment of `pc` is in force no longer."""
        if self._memory.lookup.landings.pop(pc, None) is not None:
            self._withdrawn.add(pc)

    def land(self, pc: int, *, likely: bool) -> int:
        """Enter the fragment of `pc` in the table. Returns the field of the branch that leads to it."""
        start = self._registry.starts[self._registry.slots[pc]]
        memory = self._memory
        cache = memory.cache_at(start)
        check = self._emitter.landing(pc)
        jump = self._backend.jump
        at = cache.cold + 15 & -16
        text = check.code + self._emitter.padding(at + len(check.code), len(jump) - 4) + jump
        at = memory.cold(cache, text, 16)
        field = at + len(text) - 4
        memory.patch(cache, field, start)
        self.enter(cache, at, check, pc, likely=likely)
        return field

    def land_again(self, pc: int) -> None:
        """Have the table lead to the fragment of `pc` that is in force now, instead of an earlier one."""
        self._withdrawn.discard(pc)
        landings = self._memory.lookup.landings
        known = self._landed_again.get(pc)
        if known is None:
            field = self.land(pc, likely=True)  # before the earlier one
            self._landed_again[pc] = landings[pc], field
        else:
            landings[pc], field = known
            self._memory.patch_at(field, self._registry.starts[self._registry.slots[pc]])

    def enter(self, cache: Cache, at: int, landing: Landing, pc: int, *, likely: bool) -> None:
        """Enter a landing for `pc` that has been written at `at`."""
        otherwise = at + landing.otherwise
        cache.record.fields[Field.NEGATED].append(at + landing.target)
        cache.record.landings.append((pc, at, otherwise, likely))
        self._memory.lookup.enter(at, otherwise, pc, likely=likely)

    def flush(self) -> None:
        """Forget what has been entered."""
        self._withdrawn, self._landed_again = set(), {}


class HandlerEntries:
    """Addresses that lead to the program's signal handlers for as long as there is the code cache.

    `handlers` has the handlers by these.
    """

    def __init__(self, memory: CacheMemory, linker: Linker, backend: Backend) -> None:
        self.handlers: dict[int, int] = {}
        self._entries: dict[int, int] = {}
        self._memory = memory
        self._linker = linker
        self._jump = backend.jump

    def fork_into(self, child: HandlerEntries) -> None:
        """Let a forked child's entries be the same."""
        child.handlers, child._entries = self.handlers.copy(), self._entries.copy()

    def entry(self, handler: int) -> int:
        """The address that leads to the program's `handler`. Raises LiveproError when there are too many."""
        entry = self._entries.get(handler)
        if entry is None:
            jump = self._jump
            cache = self._memory.fixed_near(handler)
            # Of one instruction, its field aligned: a thread is at its start, or not in it.
            entry = (cache.hot + len(jump) + 3 & -4) - len(jump)
            if entry + len(jump) > cache.base + cache.middle:
                raise LiveproError("The program has too many signal handlers.", "Use `--engine block`.")
            self._memory.write(cache, entry, jump)
            cache.hot = entry + len(jump)
            self._entries[handler] = entry
            self.handlers[entry] = handler
            self._linker.exit(cache, cache.hot - 4, handler)
        return entry

    def link_again(self) -> None:
        """After a flush: the handlers' fragments are yet to be made."""
        for handler, entry in self._entries.items():
            fixed = self._memory.fixed_at(entry)
            self._linker.exit(fixed, entry + len(self._jump) - 4, handler, eager=False)
