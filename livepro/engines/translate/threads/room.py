"""Room for fragments: caches near the code that threads come to, with what is kept of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from livepro.engines.base import EngineOptions
from livepro.engines.translate import layout, memory
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.stores import store_64
from livepro.engines.translate.coherence.guard import Guard
from livepro.engines.translate.persist.keeping import PersistedCache, cache_size, restore
from livepro.engines.translate.thread import TranslatedThread
from livepro.engines.translate.threads.calling import TargetCalls
from livepro.engines.translate.threads.flush_policy import FlushPolicy
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ThreadTable
from livepro.engines.translate.translator.answering import Answered, StopAnswers
from livepro.engines.translate.translator.backend import Backend
from livepro.engines.translate.translator.building import EAGER
from livepro.engines.translate.translator.emitted import Countdown
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.linux.proc import Mapping
from livepro.linux.userfault import WriteFaults
from livepro.tracee import Tracer

_FURTHER = 1
"""Blocks translated at a stop that compiled code answers, besides: stops cost little there.

With 1, 3, 6 and 10 rustc makes 51,000, 47,000, 43,000 and 39,000 stops and 0.72, 0.85, 0.98 and 1.1 million
blocks, and takes 10, 11, 12 and 14 s; gcc and node differ by less than their runs do. (What calls return to
is not counted there.)"""


def open_persisted_cache(
    isa: Isa, options: EngineOptions, backend: Backend, watched: dict[int, int | None], countdown: Countdown
) -> PersistedCache | None:
    """Where translations are kept, if they are to be."""
    if options.kept is None or not backend.movable:
        return None
    stream = options.stream
    recorded = None if stream is None else (stream.filter, stream.addresses)
    kind = repr((isa.name, int(countdown), recorded, sorted(watched.items(), key=str)))
    return PersistedCache(options.kept, kind)


class CacheRoom:
    """Has the code translated that a thread comes to, making a cache for it where there is none.

    `seconds` are those spent on translating.
    """

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        table: ThreadTable,
        calls: TargetCalls,
        syscalls: SyscallMonitor,
        flushes: FlushPolicy,
        persisted: PersistedCache | None,
    ) -> None:
        self.seconds = 0.0
        self._isa = isa
        self._backend = backend
        self._tracer = tracer
        self._table = table
        self._calls = calls
        self._discarding = syscalls.discarding
        self._flushes = flushes
        self._persisted = persisted
        self._guarding = True
        self._answers = StopAnswers()

    def translate(
        self, state: TranslatedThread, pc: int, *, landing: bool = False, eager: int = EAGER
    ) -> int | None:
        """Where the fragment of `pc` starts, None where nothing can be executed; `landing`, `eager`: see
        `BlockBuilder.translate`."""
        began = time.perf_counter()
        space = state.space
        known = space.landings.known(pc) if landing else pc in space.registry.slots
        room = known or not space.flusher.full or self._flushes.flush(state)
        if space.memory.flushed is not None and space.flusher.half_full:
            self._flushes.reclaim(state)
        room = room and self._room(state, pc)
        start = space.builder.translate(pc, landing=landing, eager=eager) if room else None
        self.seconds += time.perf_counter() - began
        if space.trust.waiting:
            self._open_guard(state)
        return start

    def answer(
        self, spaces: Sequence[CodeCache], tids: Sequence[tuple[int, int]], first: tuple[int, int]
    ) -> Answered:
        """See `StopAnswers.answer`. (The seconds count in which threads stop one soon after the other.)"""
        began = time.perf_counter()
        done = self._answers.answer([space.new_code for space in spaces], tids, _FURTHER, first)
        if any(done.stops):
            self.seconds += time.perf_counter() - began
        return done

    def see_to_the_rest(self, space: CodeCache) -> None:
        """See `NewCode.see_to_the_rest`."""
        began = time.perf_counter()
        space.new_code.see_to_the_rest(_FURTHER)
        self.seconds += time.perf_counter() - began

    def expect(self, state: TranslatedThread, pc: int) -> None:
        """Translate what a thread will return to, while it runs, if there is room."""
        space = state.space
        if space.flusher.full or space.landings.known(pc):
            return
        if pc in space.registry.slots or space.memory.cache_for(pc) is not None:
            began = time.perf_counter()
            space.builder.translate(pc, landing=True, eager=0)
            self.seconds += time.perf_counter() - began

    def in_force(self, state: TranslatedThread, block: Fragment, executed: int, address: int) -> int | None:
        """Where the fragment in force of `block` goes on as another one does at `address`, for a thread that
        has `executed` so many of its instructions. None where the code has changed or has no fragment."""
        find, pc = state.space.registry.find, block.source.pc
        if find(pc) is block:
            return address
        if self._tracer.leaving:
            return None
        charge = block.charge(address)
        asking = state.asking
        if asking is None:
            state.asking = block.position(executed, counted=charge[0])
        try:
            self.translate(state, pc)
        finally:
            state.asking = asking
        copy = find(pc)
        if copy is None or copy.slot != block.slot or copy.marks != block.marks:
            return None
        there = copy.start + address - block.start
        return there if copy.charge(there) == charge else None

    def _open_guard(self, state: TranslatedThread) -> None:
        """Have generated code watched, so that its fragments need not look at it themselves; where the kernel
        does not allow that, they go on doing so."""
        space, thread = state.space, state.thread
        if self._tracer.leaving or not (self._guarding and self._backend.guards):
            space.trust.waiting.clear()
            return
        calls = self._calls.through(thread, space.memory.gadget)
        try:
            faults = WriteFaults(thread.process.pid, calls.call, self._isa.syscalls.numbers)
        except (OSError, KeyError, LiveproError):
            self._guarding = False
            return
        for number in self._discarding:
            space.areas.data.map[layout.WATCHED + number] = 1
        read = thread.process.memory.read
        executions = partial(self._table.executions, space)
        space.trust.guard_with(Guard(faults, read, store_64, executions))

    def _room(self, state: TranslatedThread, pc: int) -> bool:
        """See to it that there is a cache near `pc`. False where nothing is mapped, or no room is left near:
        code is stepped then."""
        space = state.space
        own = space.memory.caches.of_module(pc)
        if pc in space.registry.slots or (own is not None and own.room):
            return True
        process = state.thread.process
        mapping = process.space.find(pc)
        if mapping is None:
            process.remapped()
            mapping = process.space.find(pc)
        if own is None and mapping is not None and self.open_module(state, mapping):
            return True
        if space.memory.cache_for(pc) is not None:
            return True
        if mapping is None or not mapping.executable or not mapping.readable:
            return False  # the vsyscall page, or nothing to execute
        file = self._create(state, pc, layout.CACHE_SIZE)
        if file is None:
            return False
        space.memory.add_cache(file)
        process.remapped()
        return True

    def _create(self, state: TranslatedThread, pc: int, size: int) -> memory.SharedFile | None:
        """A file of `size` bytes for a cache, mapped near `pc`; None where there is no room for it in the
        program. Raises OSError when something else is the matter."""
        process = state.thread.process
        process.remapped()  # data that was mapped since is not looked at when it is
        base = memory.free_near(process.space, pc, size)
        if base is None:
            return None
        sharing = self._calls.sharing(state.thread, state.space.memory.gadget)
        try:
            return sharing.create(size, base, executable=True)
        except OSError as error:
            if error.errno not in memory.NO_ROOM:
                raise
            return None

    def open_module(self, state: TranslatedThread, mapping: Mapping) -> bool:
        """Give a module a cache of its own, with what is kept of it; False for other code."""
        space, process = state.space, state.thread.process
        if mapping in space.memory.others:
            return False
        # (Code with a cache of its own can be kept, and translated by compiled code.)
        useful = self._persisted is not None or self._backend.compiler is not None
        if not (useful and mapping.stable_code and mapping.file_backed):
            space.memory.others.add(mapping)
            return False
        if space.emitter.recording is not None:
            space.emitter.recording.knows(mapping.start, mapping.end)
        key, persisted = "", None
        if self._persisted is not None:
            key, persisted = self._persisted.take(process.living, mapping)
        if not space.registry.cells.original:
            key = ""  # kept are only fragments that count in the cell of their own slot's number
        size = cache_size(mapping, self._backend.largest_cache, filtered=space.emitter.entries is not None)
        file = self._create(state, mapping.start, size)
        if file is None:
            space.memory.others.add(mapping)
            return False
        cache = space.memory.add_cache(file, mapping, key)
        if persisted is not None:
            restore(space, cache, persisted)
        space.regions.keep_apart(cache)
        process.remapped()
        return True
