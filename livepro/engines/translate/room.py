"""Room for copies: caches near the code that threads come to, with what is kept of it."""

from __future__ import annotations

import time
from abc import abstractmethod
from functools import partial

import numpy as np
import numpy.typing as npt

from livepro.engines.base import EngineOptions
from livepro.engines.translate import layout, memory
from livepro.engines.translate.backend import Backend
from livepro.engines.translate.cache import Block
from livepro.engines.translate.deferring import Deferring
from livepro.engines.translate.emitted import Countdown
from livepro.engines.translate.guard import Guard
from livepro.engines.translate.keeping import Shelf, cache_size, restore
from livepro.engines.translate.space import EAGER, CodeSpace
from livepro.engines.translate.stores import store_64
from livepro.engines.translate.thread import TranslatedThread
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.linux.proc import Mapping
from livepro.linux.userfault import WriteFaults
from livepro.tracee import TracedThread


class CacheRoom(Deferring):
    """Translates what a thread comes to, making a cache for it where there is none."""

    _backend: Backend
    _numbers: dict[str, int]
    _watched: dict[int, int | None]
    _countdown: Countdown
    _states: dict[int, TranslatedThread]
    _discarding: frozenset[int]

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._shelf: Shelf | None = None
        self._translating = 0.0
        self._guarding = True

    def _open_shelf(self) -> Shelf | None:
        """Where translations are kept, if they are to be."""
        if self.options.kept is None or self.options.stream is not None or not self._backend.movable:
            return None
        kind = (self.isa.name, int(self._countdown), sorted(self._watched.items(), key=str))
        return Shelf(self.options.kept, repr(kind))

    def _translate(
        self, state: TranslatedThread, pc: int, *, landing: bool = False, eager: int = EAGER
    ) -> int | None:
        """Where the copy of the block at `pc` starts, None where nothing can be executed; `eager`: see
        `CodeSpace.translate`."""
        began = time.perf_counter()
        space = state.space
        known = pc in space.lookup.landings if landing else pc in space.slots
        room = known or not space.full or self._make_room(state)
        if space.dropped is not None and space.half_full:
            self._give_back(state)
        room = room and self._room(state, pc)
        start = space.translate(pc, landing=landing, eager=eager) if room else None
        self._translating += time.perf_counter() - began
        if space.unguarded:
            self._open_guard(state)
        return start

    def _in_force(self, state: TranslatedThread, block: Block, executed: int, address: int) -> int | None:
        """Where the copy in force of `block` goes on as another one does at `address`, for a thread that
        has `executed` so many of its instructions. None where the code has changed or has no copy."""
        find, pc = state.space.find, block.source.pc
        if find(pc) is block:
            return address
        if self.leaving:
            return None
        charge = block.charge(address)
        asking = state.asking
        if asking is None:
            state.asking = block.position(executed, counted=charge[0])
        try:
            self._translate(state, pc)
        finally:
            state.asking = asking
        copy = find(pc)
        if copy is None or copy.slot != block.slot or copy.marks != block.marks:
            return None
        there = copy.start + address - block.start
        return there if copy.charge(there) == charge else None

    def _open_guard(self, state: TranslatedThread) -> None:
        """Have generated code watched, so that copies of it need not look at it themselves; where the kernel
        does not allow that, they go on doing so."""
        space, thread = state.space, state.thread
        if self.leaving or not (self._guarding and self._backend.guards):
            space.unguarded.clear()
            return
        calls = memory.Injector(thread, self.isa.registers, space.gadget)
        try:
            faults = WriteFaults(thread.process.pid, calls.call, self._numbers)
        except (OSError, KeyError, LiveproError):
            self._guarding = False
            return
        for number in self._discarding:
            space.memory.data.map[layout.WATCHED + number] = 1
        read = thread.process.memory.read
        space.guard_with(Guard(faults, read, store_64, partial(self._executions, space)))

    def _executions(self, space: CodeSpace, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How often living threads have executed the copies that count in `cells` (int64), about."""
        total = np.zeros(len(cells), np.int64)
        for state in list(self._states.values()):
            if state.space is space:
                total += state.counters.counted(cells)
        return total

    @abstractmethod
    def _make_room(self, state: TranslatedThread) -> bool:
        """Drop all copies. False if it cannot be done now."""

    @abstractmethod
    def _give_back(self, state: TranslatedThread) -> bool:
        """Use the room of dropped copies again. False if it cannot be done now."""

    def _room(self, state: TranslatedThread, pc: int) -> bool:
        """See to it that there is a cache near `pc`. False where nothing is mapped."""
        space = state.space
        if pc in space.slots or space.caches.of_module(pc) is not None:
            return True
        process = state.thread.process
        mapping = process.space.find(pc)
        if mapping is None:
            process.remapped()
            mapping = process.space.find(pc)
        if mapping is not None and self._open_module(state, mapping):
            return True
        if space.cache_for(pc) is not None:
            return True
        if mapping is None or not mapping.executable or not mapping.readable:
            return False  # the vsyscall page, or nothing to execute
        sharing = self._sharing(state.thread, space.gadget)
        process.remapped()
        base = memory.free_near(process.space, pc, layout.CACHE_SIZE)
        space.add_cache(sharing.create(layout.CACHE_SIZE, base, executable=True))
        process.remapped()
        return True

    def _open_module(self, state: TranslatedThread, mapping: Mapping) -> bool:
        """Give a module a cache of its own, with what is kept of it; False for other code."""
        space, process = state.space, state.thread.process
        if self._shelf is None or mapping in space.others:
            return False
        kept = self._shelf.take(process.living, mapping)
        if kept is None:
            space.others.add(mapping)
            return False
        process.remapped()  # data that was mapped since is not looked at when it is
        key, unit = kept
        if not space.cells.original:
            key = ""  # what counts elsewhere than it is numbered is not kept
        size = cache_size(mapping)
        base = memory.free_near(process.space, mapping.start, size)
        file = self._sharing(state.thread, space.gadget).create(size, base, executable=True)
        cache = space.add_cache(file, mapping, key)
        if unit is not None:
            restore(space, cache, unit)
        space.keep_apart(cache)
        process.remapped()
        return True

    def _sharing(self, thread: TracedThread, gadget: int) -> memory.Sharing:
        """Means to map more of livepro's memory, through a stopped thread."""
        injector = memory.Injector(thread, self.isa.registers, gadget)
        scratch = getattr(thread.registers(), self.isa.registers.sp) - memory.BELOW_RED_ZONE
        return memory.Sharing(injector, thread.process.memory, self._numbers, scratch)
