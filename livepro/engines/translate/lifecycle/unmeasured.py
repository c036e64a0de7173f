"""Processes in which there is no room for livepro's memory: they run all the same, and are not counted."""

from __future__ import annotations

import errno
import os

from livepro.engines.telling import Telling
from livepro.engines.translate import layout
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.memory import NO_ROOM
from livepro.engines.translate.signals.returning import give_back
from livepro.engines.translate.threads.calling import TargetCalls
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ThreadTable
from livepro.engines.translate.translator.backend import Backend
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.tracee import TracedProcess, TracedThread


class Unmeasured:
    """Lets processes run without livepro, and says so in one of `warnings`."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        table: ThreadTable,
        calls: TargetCalls,
        syscalls: SyscallMonitor,
        warnings: list[str],
    ) -> None:
        self._isa = isa
        self._backend = backend
        self._table = table
        self._calls = calls
        self._syscalls = syscalls
        self._telling = Telling(warnings)

    def takes(self, thread: TracedThread, error: OSError) -> bool:
        """Let the process of a thread, its first, run from here on without livepro. False, and nothing,
        where `error` is not want of room, or the process is one that was attached to. Raises OSError."""
        process, table = thread.process, self._table
        if error.errno not in NO_ROOM or process.attached or process in table.spaces:
            return False
        inherited = table.inherited.pop(process, None)
        if inherited is not None:
            self._put_back(thread, inherited)
        process.remapped()
        process.measured = False
        self._note(process, error.errno)
        return True

    def born(self, process: TracedProcess, parent: TracedProcess) -> None:
        """A process was forked; it runs as its parent does."""
        if parent in self._telling:
            self._note(process, errno.EMFILE)

    def out_of_cache(self, tid: int, space: CodeCache) -> None:
        """Put a forked child that is stopped behind its fork in a code cache where it would be natively."""
        registers = ptrace.get_registers(tid, self._isa.registers.structure)
        place = space.memory.locate(getattr(registers, self._isa.registers.pc))
        if place is not None:
            self._backend.behind_syscall(registers, place.pc)
            setattr(registers, self._isa.registers.pc, place.pc)
        self._backend.let_go(tid, registers)

    def _put_back(self, thread: TracedThread, space: CodeCache) -> None:
        """Put a forked child into its own code, and take its parent's memory of livepro's from it, of which
        there may be copies by now."""
        process, numbers = thread.process, self._isa.syscalls.numbers
        self.out_of_cache(thread.tid, space)
        calls, areas = self._calls.by(process, thread.tid), space.areas
        at = areas.area_address(0) + layout.SCRATCH_ACTION
        actions = self._syscalls.actions[process]
        give_back(calls, numbers["rt_sigaction"], thread.tid, at, space.handlers.handlers, actions)
        actions.given_back()
        for file in (*(kept.file for kept in space.memory.files), *areas.windows, areas.data):
            calls.call(numbers["munmap"], file.base, file.size)

    def _note(self, process: TracedProcess, reason: int) -> None:
        self._telling.add(
            process,
            f"ran, but could not be counted: there is no room for livepro's memory ({os.strerror(reason)}). "
            "Raise the program's limit (`ulimit -n`), or use `--engine block`, which needs none.",
        )
