"""System calls that are stepped at their own place: what they change is seen to before and after.

Those that map memory otherwise have fragments dropped, and generated code compared; those that
set signal handlers tell the kernel of entries into the cache (`actions`); those that make children
are made so that livepro is told (`tracee.births`).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any

from livepro.engines.translate.memory import OWN_FILES
from livepro.engines.translate.signals.actions import ACTION_SIZE, SignalActions
from livepro.engines.translate.signals.deferring import Deferral
from livepro.engines.translate.thread import TranslatedThread
from livepro.engines.translate.translator.backend import WHEN_TOLD, Backend
from livepro.engines.traps import IgnoredTraps
from livepro.isa.base import Isa, Quirk
from livepro.tracee import TracedProcess, Tracer

_MREMAP_FIXED = 2  # include/uapi/linux/mman.h
_MAP_FIXED = 0x10  # include/uapi/asm-generic/mman-common.h
_PROT_EXEC = 4  # include/uapi/asm-generic/mman-common.h
_EVERYTHING = (1 << 64) - 1  # shmat does not say how much it maps
_ERRORS = _EVERYTHING - 4095  # results above are errors: MAX_ERRNO in include/linux/err.h


class SyscallMonitor:
    """Knows which system calls must stop, and does what is to be done around them.

    `watched` are the numbers of those calls (see `Backend.emitter`), `asking` those of them that may be
    questions to livepro; `discarding` calls stop once generated code is guarded. `actions` are the signal
    handlers of each process; `changing` are threads (tids) that tell the kernel of one in the cache.
    `settle` waits until no thread is on its way to what a signal's action is now. `warn` tells of calls that
    take livepro's own memory away.
    """

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        tracer: Tracer,
        deferral: Deferral,
        traps: IgnoredTraps,
        asking: Mapping[int, int],
        settle: Callable[[TranslatedThread, int, dict[TracedProcess, SignalActions]], None],
        warn: Callable[[str], None],
    ) -> None:
        self.actions: dict[TracedProcess, SignalActions] = {}
        self.changing: set[int] = set()
        # Threads that make an rt_sigaction as it is: their process, and what SIGTRAP's action is to be (None:
        # another signal's is asked for or changed).
        self._unaltered: dict[int, tuple[TracedProcess, bytes | None]] = {}
        self._isa = isa
        self._backend = backend
        self._tracer = tracer
        self._deferral = deferral
        self._traps = traps
        self._settle = settle
        self._warn = warn
        self._warned: set[TracedProcess] = set()
        named = isa.syscalls.named
        self._remapping = named(
            "mmap", "munmap", "mprotect", "pkey_mprotect", "mremap", "shmat", "shmdt", "remap_file_pages"
        )
        self._moving = named("shmat")
        self._placing = named("mmap")
        self._growing = named("mremap")
        self._acting = named("rt_sigaction")
        more = ("rt_sigreturn", "execve", "execveat", "arch_prctl", "ptrace", "clone", "clone3")
        self.watched: dict[int, int | None] = dict.fromkeys(self._remapping | self._acting | named(*more))
        self.watched |= asking
        self.discarding = named("madvise") if backend.guards else frozenset()
        self.watched |= dict.fromkeys(self.discarding, WHEN_TOLD)

    def before(self, state: TranslatedThread) -> None:
        """A thread is about to make a system call at its own place."""
        names = self._isa.registers
        number = getattr(state.before, names.syscall_number)
        self._deferral.mask_for_call(state, number)
        self._tracer.births.before(state.thread, state.before)
        thread, space, guard = state.thread, state.space, state.space.trust.guard
        if guard is not None and (number in self._remapping or number in self.discarding):
            ranges = self._ranges(state.before, number)
            guard.moves(thread.tid, [(0, _EVERYTHING)] if number in self._moving else ranges)
        if number in self._remapping and thread.process not in self._warned:
            self._look_after_own(state, number)
        if number not in self._acting:
            return
        number, action = (getattr(state.before, name) for name in names.syscall_arguments[:2])
        number &= 0xFFFF_FFFF  # an int
        others = (process for process, _ in self._unaltered.values())
        early = self._tracer.to_be_taken(thread.process) or thread.process in others
        if early or state.lends or not self._backend.enters_handlers:
            # A thread that is not watched yet must not enter a handler in the cache, nor one that is lent a
            # register; and who makes the call as it is must not be told of one, nor have one forgotten.
            wanted = None
            if number == signal.SIGTRAP:
                wanted = thread.read(action, ACTION_SIZE) if action else b""
            self._unaltered[thread.tid] = thread.process, wanted
            return
        if action:
            self._settle(state, number, self.actions)
        registers = thread.registers()
        actions = self.actions[thread.process]
        area = state.area_address
        state.change = actions.begin(thread.tid, registers, names, state.words, area, space.handlers.entry)
        if state.change is not None:
            thread.set_registers(registers)
            self.changing.add(thread.tid)

    def _look_after_own(self, state: TranslatedThread, number: int) -> None:
        """Warn of a call that maps otherwise what livepro has mapped: the process will hardly survive it."""
        registers, process = state.before, state.thread.process
        flags = getattr(registers, self._isa.registers.syscall_arguments[3])
        if number in self._moving or (number in self._placing and not flags & _MAP_FIXED):
            return  # the address is a wish
        for start, end in self._ranges(registers, number):
            if any(mapping.path.startswith(OWN_FILES) for mapping in process.space.within(start, end)):
                self._warned.add(process)
                self._warn(
                    f"Process {process.pid} changes mappings between {start:#x} and {end:#x} that are "
                    "livepro's: it may die of that, and its counts may be wrong. The block engine "
                    "(--engine block) keeps nothing in a process."
                )

    def after(self, state: TranslatedThread, *, returned: bool) -> None:
        """A thread has made it; `returned`: and is behind it."""
        self._tracer.births.settle(state.thread)
        if returned:  # not by sigreturn, whose registers are all the program's own
            self._isa.after_step(Quirk.SYSCALL, state.thread)
        registers = self._isa.registers
        number = getattr(state.before, registers.syscall_number)
        self._traps.called(state.thread, state.before)
        if state.change is not None:
            self.action_changed(state)
        elif number in self._acting:  # (or it has failed)
            self.unaltered_made(state)
        elif number in self._remapping:
            self._remapped(state, number)

    def action_changed(self, state: TranslatedThread, *, made: bool = True) -> None:
        """An rt_sigaction has been `made`, or is put off, that tells the kernel otherwise than
        the program meant."""
        thread, change = state.thread, state.change
        assert change is not None
        state.change = None
        self.changing.discard(thread.tid)
        registers = thread.registers()
        actions, names = self.actions[thread.process], self._isa.registers
        if made:
            handlers = state.space.handlers.handlers
            actions.finish(change, thread.tid, registers, names, state.words, handlers)
        else:
            actions.undo(change, registers, names)
        thread.set_registers(registers)

    def unaltered_made(self, state: TranslatedThread, *, made: bool = True) -> None:
        """An rt_sigaction has been `made`, or is put off, as the program meant it."""
        tid, names = state.thread.tid, self._isa.registers
        process, wanted = self._unaltered.pop(tid, (None, None))
        if not made or process is None:
            return
        actions = self.actions[process]
        actions.forget()
        if wanted is not None and getattr(state.thread.registers(), names.syscall_result) == 0:
            actions.trap_told(tid, wanted, getattr(state.before, names.syscall_arguments[2]))

    def forget(self, tid: int) -> None:
        """A thread has ended."""
        self._unaltered.pop(tid, None)

    def _remapped(self, state: TranslatedThread, number: int) -> None:
        registers = self._isa.registers
        ranges = self._ranges(state.before, number)
        if number in self._placing:  # what it was given is a wish, and often 0
            result = getattr(state.thread.registers(), registers.syscall_result)
            ((start, end),) = ranges
            ranges = ranges if result > _ERRORS else [(result, result + end - start)]
        third = getattr(state.before, registers.syscall_arguments[2])
        # What is moved within memory is executable if it was before.
        executable = number in self._moving or (number not in self._growing and third & _PROT_EXEC)
        process, space = state.thread.process, state.space
        touched = [r for r in ranges if process.space.holds_code(*r) or space.tables.overlap(*r)]
        if touched or executable:
            process.remapped()
        for start, end in touched:
            space.drop(start, end)

    def _ranges(self, registers: Any, number: int) -> list[tuple[int, int]]:
        """What a system call may map otherwise that a thread is about to make, as [start, end)."""
        names = self._isa.registers.syscall_arguments[:5]
        address, size, third, flags, new = (getattr(registers, name) for name in names)
        moved = number in self._growing and flags & _MREMAP_FIXED
        return [(address, address + size), (new, new + third)] if moved else [(address, address + size)]
