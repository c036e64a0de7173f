"""From anywhere in a code cache to the program's own code, with nothing but a map of the fragments.

What `livepro.engines.rescue` asks after an error. It shares nothing with how threads are brought to
rest, given signals or let go in the ordinary way (`settling`, `leaving`) but the fragments' places.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.stop_reasons import (
    BudgetStop,
    ChangedStop,
    ChunkStop,
    MissStop,
    PinnedStop,
    RegionStop,
    SupersededStop,
)
from livepro.engines.translate.memory import OWN_FILES, Calls
from livepro.engines.translate.signals.actions import SignalActions
from livepro.engines.translate.signals.returning import give_back
from livepro.engines.translate.thread import TranslatedThread
from livepro.engines.translate.threads.table import ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.isa.base import Isa
from livepro.linux import proc, ptrace
from livepro.linux.vm import shares_memory
from livepro.tracee import TracedProcess

_UNREAD = layout.RECORDS_END - layout.RECORDS_MORE
"""Where a thread records that nobody reads any longer: as often as it likes."""


def boundaries(block: Fragment) -> dict[int, int]:
    """The offsets in a fragment at which all registers are the program's own: offset -> index of the
    instruction that is about to be executed."""
    details = block.details
    begin, end = details.retreat
    low, high = details.dirty
    count = len(block.source.facts)
    marks = {
        at: index
        for index, at in reversed(list(enumerate(block.marks)))
        if index < count and not begin <= at < end and not low <= at < high
    }
    if not begin <= 0 < end and not low <= 0 < high:
        marks[0] = 0  # what is emitted before the first instruction has not begun
    return {**marks, **{at: index for at, index in details.reps.items() if not low <= at < high}}


class TranslateHoming:
    """See `livepro.engines.rescue.Homing`.

    `table` are the threads and the code caches of processes, `actions` the signal handlers; `calls` makes
    system calls as a stopped thread that is in its own code.
    """

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        table: ThreadTable,
        actions: Mapping[TracedProcess, SignalActions],
        calls: Callable[[TracedProcess, int], Calls],
    ) -> None:
        self._isa = isa
        self._backend = backend
        self._states = table.states
        self._spaces = dict(table.spaces)
        self._inherited = table.inherited
        self._actions = actions
        self._calls = calls
        self._advance = isa.breakpoint.pc_advance
        self._told: set[int] = set()
        self._kept: set[CodeCache] = set()

    # -- threads that run on meanwhile

    def open(self) -> None:
        """Handlers are entered in the program's own code, and nobody waits for a page."""
        for space in self._spaces.values():
            guard = space.trust.guard
            if guard is not None:
                guard.close()
            jump = self._backend.jump
            for entry, handler in space.handlers.handlers.items():
                cache = space.memory.fixed_at(entry)
                field = entry + len(jump) - 4
                if not self._backend.link(cache.map, field - cache.base, handler - field):
                    self._kept.add(space)  # it leads on through the cache
                if self._backend.synchronise is not None:
                    self._backend.synchronise(cache.map, field - cache.base, field - cache.base + 4)

    # -- one stopped thread

    def planted(self, tid: int, address: int) -> bool | None:
        """See `Homing`."""
        space, state = self._space(tid), self._states.get(tid)
        if state is not None and state.led_to == address + self._advance:
            return None
        return space is not None and space.memory.holds(address)

    def home(self, tid: int, registers: Any, *, trapped: bool, faulted: bool) -> bool:
        """See `Homing`."""
        space, state = self._space(tid), self._states.get(tid)
        name = self._isa.registers.pc
        pc = getattr(registers, name)
        if space is None or not space.memory.holds(pc - (self._advance if trapped else 0)):
            self._settle_change(state, pc, registers)
            return True
        words = self._words(space, state, registers)
        at = pc - (self._advance if trapped else 0)
        handler = space.handlers.handlers.get(at)
        target = handler if handler is not None else space.linker.exits.get(at) or space.new_code.exit(at)
        if target is None and trapped:
            target = self._stopped(space, at, registers, words)
        elif target is None:
            target = self._at_boundary(space, at, registers, words)
        if target is None and faulted:
            target = self._failed(space, at, registers, words)
        if target is None:
            return False
        if not space.memory.holds(target):
            setattr(registers, name, target)
            return True
        setattr(registers, name, target)  # a stop that only asked for something: it goes on behind
        return False

    def _at_boundary(self, space: CodeCache, at: int, registers: Any, words: Any) -> int | None:
        """The program's address of a thread that is at a boundary, or at a stop that it has not run into."""
        block = self._fragment(space, at)
        if block is not None:
            within = at - block.start
            source = block.source
            behind = block.details.behind_syscall.get(within)
            if behind is not None:
                target = source.pc + source.offsets[behind]
                self._behind_syscall(registers, target, words)
                return target
            index = boundaries(block).get(within)
            if index is None:
                index = block.details.entered.get(within)
            if index is not None:
                return source.pc + source.offsets[index]
        for pinned in space.memory.pinned.values():
            place = pinned.locate(at)
            if place is not None:
                if place.behind_syscall:
                    self._behind_syscall(registers, place.pc, words)
                return place.pc
        return None

    def _behind_syscall(self, registers: Any, pc: int, words: Any) -> None:
        self._backend.behind_syscall(registers, pc)
        if words is not None:
            self._backend.keep_own(registers, words)

    def _stopped(self, space: CodeCache, at: int, registers: Any, words: Any) -> int | None:
        """Where a thread that has run into the stop at `at` goes on: in the program, or behind the stop."""
        stop = space.memory.stop_at(at) or space.new_code.stop(at)
        if stop is None:
            return None
        if isinstance(stop, MissStop):
            target = self._backend.missed_target(registers)
            self._give_back(registers, words)
            return target
        if isinstance(stop, BudgetStop):
            return stop.resume
        if isinstance(stop, SupersededStop | RegionStop):
            return stop.pc
        if isinstance(stop, PinnedStop):
            self._behind_syscall(registers, stop.pc, words)
            return stop.pc
        if isinstance(stop, ChunkStop):  # registers are borrowed
            if words is None:
                raise RuntimeError("a thread without an area has a chunk of records")
            words[layout.RECORD // 8] = _UNREAD
            self._backend.lend(registers, words)
            return stop.resume
        source = stop.block.source
        if isinstance(stop, ChangedStop):
            self._give_back(registers, words)
        return source.pc + source.offsets[stop.index]

    def _failed(self, space: CodeCache, at: int, registers: Any, words: Any) -> int | None:
        """The boundary before an emitted instruction that cannot be executed: the program's own will fail."""
        place = space.memory.locate(at)
        if place is None:
            return None
        which = place.block.details.borrowed.get(at - place.block.start, 0)
        if not place.exact:
            self._give_back(registers, words, which)
        return place.pc

    def _give_back(self, registers: Any, words: Any, which: int = 0) -> None:
        if words is None:
            raise RuntimeError("a thread without an area has borrowed registers")
        self._backend.restore_spills(registers, words, which)

    @staticmethod
    def _fragment(space: CodeCache, at: int) -> Fragment | None:
        """The fragment that holds a cache address."""
        caches: list[Cache] = list(space.memory.caches.all)
        if space.memory.flushed is not None:
            caches += space.memory.flushed.caches.all
        for cache in caches:
            if not cache.first <= at < cache.end:
                continue
            row = bisect_right(cache.starts, at) - 1
            if row < 0:
                continue
            block = cache.blocks[row] or cache.recall(cache, row)
            if at - block.start < block.size:
                return block
        return space.new_code.fragment(at)

    def _settle_change(self, state: TranslatedThread | None, pc: int, registers: Any) -> None:
        """A thread at its own place may have been about to tell the kernel of a handler in the cache."""
        if state is None or state.change is None:
            return
        change, state.change = state.change, None
        names, actions = self._isa.registers, self._actions[state.thread.process]
        if pc == state.at:
            actions.undo(change, registers, names)
        else:
            thread = state.thread
            actions.finish(change, thread.tid, registers, names, state.words, state.space.handlers.handlers)

    # -- what else is a thread's own

    def leave(self, tid: int, registers: Any) -> None:
        """See `Homing`."""
        space, state = self._space(tid), self._states.get(tid)
        words = None if space is None else self._words(space, state, registers)
        if words is None:
            ptrace.set_registers(tid, registers)
        else:
            self._backend.set_own(tid, registers, words, 0 if state is None else state.program_base)

    def in_hand(self, tid: int) -> tuple[int, Any] | None:
        """See `Homing`."""
        state = self._states.get(tid)
        return None if state is None else state.held

    def mask(self, tid: int) -> int | None:
        """See `Homing`."""
        state = self._states.get(tid)
        if state is None or (state.deferred and not state.words[layout.DEFERRING // 8]):
            return None
        return state.mask

    def last(self, tid: int, others: list[int]) -> None:
        """Give the program its handlers back before the first thread of a process is let go, and unmap
        livepro's memory before the last one is."""
        space = self._space(tid)
        if space is None:
            return
        group, process = _group(tid), space.process
        if group not in self._told:
            self._told.add(group)
            try:
                self._give_handlers_back(process, tid, space)
            except Exception:
                self._kept.add(space)
                raise
        if space in self._kept:
            return
        number = self._isa.syscalls.numbers["kcmp"]
        if not any(self._space(other) is space and shares_memory(number, tid, other) for other in others):
            self._take_down(process, tid, space)

    def _give_handlers_back(self, process: TracedProcess, tid: int, space: CodeCache) -> None:
        actions = self._actions.get(process, SignalActions())
        if actions.told or actions.trap is not None:
            at = space.areas.area_address(0) + layout.SCRATCH_ACTION
            acting = self._isa.syscalls.numbers["rt_sigaction"]
            give_back(self._calls(process, tid), acting, tid, at, space.handlers.handlers, actions)

    def _take_down(self, process: TracedProcess, tid: int, space: CodeCache) -> None:
        memory = space.areas
        if not memory.data.mapped_in(tid):
            return
        calls, numbers = self._calls(process, tid), self._isa.syscalls.numbers
        for name in os.listdir(f"/proc/{tid}/fd"):  # one that was being made
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{tid}/fd/{name}").startswith(OWN_FILES):
                    calls.call(numbers["close"], int(name))
        for file in (*(cache_file.file for cache_file in space.memory.files), *memory.windows, memory.data):
            calls.call(numbers["munmap"], file.base, file.size)

    # -- which threads belong where

    def _space(self, tid: int) -> CodeCache | None:
        """The code space that a thread may be in."""
        state = self._states.get(tid)
        if state is not None:
            return state.space
        group = _group(tid)
        known = [
            (p, space) for p, space in (*self._spaces.items(), *self._inherited.items()) if p.pid == group
        ]
        if known:
            return known[-1][1]
        # A child that nobody has heard of yet has its parent's memory, or a copy of that.
        spaces = dict.fromkeys(self._spaces.values())
        return next((space for space in spaces if space.areas.data.mapped_in(tid)), None)

    def _words(self, space: CodeCache, state: TranslatedThread | None, registers: Any) -> Any:
        """The area that a thread's registers lead to (one that is not known yet was born with its
        parent's), None if they lead to none."""
        address = self._backend.area_of(registers)
        if state is not None and state.area_address == address:
            return state.words
        for index in range(space.areas.users):
            if space.areas.area_address(index) == address:
                return space.areas.area(index)
        return None


def _group(tid: int) -> int:
    """The process of a thread."""
    try:
        return int(proc.status_field(tid, "Tgid"))
    except (OSError, KeyError):
        return tid
