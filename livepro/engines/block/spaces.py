"""Address spaces that come, change and go: what becomes of their breakpoints.

A forked child has a copy of them, a vforked one shares them with its parent, an
exec drops them. A child that is to be let go gets its original bytes back, or,
while it shares its parent's memory, is watched like any other, uncounted.
"""

from __future__ import annotations

import contextlib

from livepro.engines.base import EngineOptions
from livepro.engines.block.patching import Patching
from livepro.engines.block.text import Text
from livepro.engines.block.thread import BlockThread
from livepro.engines.stepping import StepThread
from livepro.isa.base import Isa, Quirk
from livepro.linux.proc import Memory
from livepro.linux.vm import shares_memory
from livepro.tracee import TracedProcess

_FAILED = range((1 << 64) - 4095, 1 << 64)  # results of failed system calls (MAX_ERRNO, include/linux/err.h)


class Spaces(Patching):
    """The part of the block engine that follows system calls and processes."""

    notices_children = True

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._protecting = isa.syscalls.named("mprotect", "pkey_mprotect")
        self._moving = isa.syscalls.named("mremap")
        self._placing = isa.syscalls.named("mmap", "shmat")

    # -- system calls

    def _after_quirk(self, state: StepThread, quirk: Quirk, *, returned: bool) -> None:
        super()._after_quirk(state, quirk, returned=returned)
        assert isinstance(state, BlockThread)
        if quirk is not Quirk.SYSCALL or state.text.closed or not self.isa.guards_returns(state.before):
            return
        if getattr(state.thread.registers(), self.isa.registers.syscall_result) not in _FAILED:
            # From now on the processor must execute every call and return itself.
            state.text.closed = True
            self._bar(state.text, list(state.text.sites.values()), state)

    def _remapped(self, state: StepThread, address: int, size: int, protection: int) -> None:
        assert isinstance(state, BlockThread)
        layout = self.isa.registers
        result = getattr(state.thread.registers(), layout.syscall_result)
        if result in _FAILED:
            return
        number = getattr(state.before, layout.syscall_number)
        new_size = getattr(state.before, layout.syscall_arguments[2])
        start = result if number in self._placing else address
        end = start + size
        text = state.text
        old = state.thread.process.space
        touched = any(m.executable and m.start < end and start < m.end for m in old.mappings)
        for process, other in self._texts.items():
            if other is text:
                process.remapped()
                if touched:
                    self._nodes[self.records[process]].clear()
        if not touched:
            return
        sites = text.within(start, end)
        text.unmapped(start, end)
        if number in self._protecting:
            self._bar(text, sites, state, forget=True)
            return
        memory = state.thread.process.memory
        for site in sites:
            text.forget(site)
            at = result + site.address - start
            if number in self._moving and site.planted and site.address < start + new_size:
                with contextlib.suppress(OSError):
                    memory.write(at, site.original)
        if text.version >= 0:
            text.renew()

    # -- lives

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        super().process_started(process, parent)
        self._nodes[self.records[process]] = {}
        text = self._texts.get(parent) if parent is not None else None
        if text is None:
            self._texts[process] = Text(self.isa.breakpoint)
        elif self._shares_memory(process.pid, parent, process.shares_memory):
            self._texts[process] = text
        else:
            self._texts[process] = text.inherited(process.memory)

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        text = self._texts.get(parent)
        if text is None:
            return True
        if self._shares_memory(tid, parent, False):
            return False
        memory = Memory(tid)
        try:
            text.restore(memory)
        finally:
            memory.close()
        return True

    def _shares_memory(self, tid: int, parent: TracedProcess | None, otherwise: bool) -> bool:
        """Whether a new process runs in its parent's memory."""
        number = self.isa.syscalls.numbers.get("kcmp")
        shared = None
        if number is not None and parent is not None:
            shared = shares_memory(number, tid, parent.living)
        return otherwise if shared is None else shared

    def process_ended(self, process: TracedProcess) -> None:
        super().process_ended(process)
        self._nodes.pop(self.records[process], None)
        self._texts.pop(process, None)
