"""System calls that are stepped at their own place: what they change is seen to before and after.

Those that map memory otherwise have copies of code dropped, and generated code compared; those that
set signal handlers tell the kernel of entries into the cache (`actions`).
"""

from __future__ import annotations

from typing import Any

from livepro.engines.base import EngineOptions
from livepro.engines.translate import backend_for
from livepro.engines.translate.actions import SignalActions
from livepro.engines.translate.backend import WHEN_TOLD
from livepro.engines.translate.room import CacheRoom
from livepro.engines.translate.thread import TranslatedThread
from livepro.isa.base import Isa, Quirk
from livepro.tracee import TracedProcess

_MREMAP_FIXED = 2  # include/uapi/linux/mman.h
_PROT_EXEC = 4  # include/uapi/asm-generic/mman-common.h
_EVERYTHING = (1 << 64) - 1  # shmat does not say how much it maps
_ERRORS = _EVERYTHING - 4095  # results above are errors: MAX_ERRNO in include/linux/err.h


class SteppedCalls(CacheRoom):
    """Which system calls must stop, and what is done around them."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._backend = backend_for(isa.name)
        self._backend.check_processor()
        self._numbers = dict(isa.syscalls.numbers)
        named = isa.syscalls.named
        self._remapping = named(
            "mmap", "munmap", "mprotect", "pkey_mprotect", "mremap", "shmat", "shmdt", "remap_file_pages"
        )
        self._moving = named("shmat")
        self._placing = named("mmap")
        self._growing = named("mremap")
        self._acting = named("rt_sigaction")
        more = ("rt_sigreturn", "execve", "execveat", "arch_prctl", *self._backend.stepped_calls)
        self._watched: dict[int, int | None] = dict.fromkeys(self._remapping | self._acting | named(*more))
        self._watched |= self.inprocess.sizes
        self._discarding = named("madvise") if self._backend.guards else frozenset()
        self._watched |= dict.fromkeys(self._discarding, WHEN_TOLD)
        self._actions: dict[TracedProcess, SignalActions] = {}
        self._changing: set[int] = set()

    def _before_system_call(self, state: TranslatedThread) -> None:
        names = self.isa.registers
        number = getattr(state.before, names.syscall_number)
        self._mask_for_call(state, number)
        thread, space = state.thread, state.space
        if space.guard is not None and (number in self._remapping or number in self._discarding):
            ranges = self._ranges(state.before, number)
            space.guard.moves(thread.tid, [(0, _EVERYTHING)] if number in self._moving else ranges)
        if not self._backend.enters_handlers or number not in self._acting:
            return
        if self.tracer.to_be_taken(thread.process):
            return  # a thread that is not watched yet must not enter a handler in the cache
        registers = thread.registers()
        actions = self._actions[thread.process]
        area = state.area_address
        state.change = actions.begin(thread.tid, registers, names, state.words, area, space.entry)
        if state.change is not None:
            thread.set_registers(registers)
            self._changing.add(thread.tid)

    def _changed_action(self, state: TranslatedThread, *, made: bool = True) -> None:
        """An rt_sigaction has been `made`, or is put off, that tells the kernel otherwise than
        the program meant."""
        thread, change = state.thread, state.change
        assert change is not None
        state.change = None
        self._changing.discard(thread.tid)
        registers = thread.registers()
        actions, names = self._actions[thread.process], self.isa.registers
        if made:
            actions.finish(change, thread.tid, registers, names, state.words, state.space.handlers)
        else:
            actions.undo(change, registers, names)
        thread.set_registers(registers)

    def _after_system_call(self, state: TranslatedThread, *, returned: bool) -> None:
        if returned:  # not by sigreturn, whose registers are all the program's own
            self.isa.after_step(Quirk.SYSCALL, state.thread)
        registers = self.isa.registers
        number = getattr(state.before, registers.syscall_number)
        if state.change is not None:
            self._changed_action(state)
        elif number in self._acting:
            self._actions[state.thread.process].forget()
        elif number in self._remapping:
            ranges = self._ranges(state.before, number)
            if number in self._placing:  # what it was given is a wish, and often 0
                result = getattr(state.thread.registers(), registers.syscall_result)
                ((start, end),) = ranges
                ranges = ranges if result > _ERRORS else [(result, result + end - start)]
            third = getattr(state.before, registers.syscall_arguments[2])
            # What is moved within memory is executable if it was before.
            executable = number in self._moving or (number not in self._growing and third & _PROT_EXEC)
            process = state.thread.process
            touched = [r for r in ranges if process.space.holds_code(*r) or state.space.holds_table(*r)]
            if touched or executable:
                process.remapped()
            for start, end in touched:
                state.space.drop(start, end)

    def _ranges(self, registers: Any, number: int) -> list[tuple[int, int]]:
        """What a system call may map otherwise that a thread is about to make, as [start, end)."""
        names = self.isa.registers.syscall_arguments[:5]
        address, size, third, flags, new = (getattr(registers, name) for name in names)
        moved = number in self._growing and flags & _MREMAP_FIXED
        return [(address, address + size), (new, new + third)] if moved else [(address, address + size)]
