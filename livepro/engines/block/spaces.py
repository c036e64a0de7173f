"""Address spaces that come, change and go: what becomes of their breakpoints.

A forked child has a copy of them, a vforked one shares them with its parent, an
exec drops them. A child that is to be let go gets its original bytes back, or,
while it shares its parent's memory, is watched like any other, uncounted.
"""

from __future__ import annotations

import contextlib

from livepro.engines.block.barring import Barrier
from livepro.engines.block.plan import Node
from livepro.engines.block.text import Text
from livepro.engines.block.thread import BlockThread
from livepro.isa.base import Isa
from livepro.linux.proc import Memory
from livepro.linux.vm import shares_memory
from livepro.tracee import TracedProcess

FAILED = range((1 << 64) - 4095, 1 << 64)
"""Results of failed system calls (MAX_ERRNO, include/linux/err.h)."""


class Spaces:
    """Follows the code of processes: `texts` has its breakpoints, `nodes` its decoded blocks by address."""

    def __init__(self, isa: Isa, texts: dict[TracedProcess, Text], barrier: Barrier) -> None:
        self.texts = texts
        self.nodes: dict[TracedProcess, dict[int, Node]] = {}
        self._isa = isa
        self._barrier = barrier
        self._protecting = isa.syscalls.named("mprotect", "pkey_mprotect")
        self._moving = isa.syscalls.named("mremap")
        self._placing = isa.syscalls.named("mmap", "shmat")

    def remapped(self, state: BlockThread, address: int, size: int) -> None:
        """A thread has made a system call that changes mappings of so many bytes from an address on."""
        layout = self._isa.registers
        result = getattr(state.thread.registers(), layout.syscall_result)
        if result in FAILED:
            return
        number = getattr(state.before, layout.syscall_number)
        new_size = getattr(state.before, layout.syscall_arguments[2])
        start = result if number in self._placing else address
        end = start + size
        text = state.text
        old = state.thread.process.space
        touched = any(m.executable and m.start < end and start < m.end for m in old.mappings)
        for process, other in self.texts.items():
            if other is text:
                process.remapped()
                if touched:
                    self.nodes[process].clear()
        if not touched:
            return
        sites = text.within(start, end)
        text.unmapped(start, end)
        if number in self._protecting:
            self._barrier.bar(text, sites, state, forget=True)
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

    def begin(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        """A process image has begun."""
        self.nodes[process] = {}
        text = self.texts.get(parent) if parent is not None else None
        if text is None:
            self.texts[process] = Text(self._isa.breakpoint)
        elif self._shares_memory(process.pid, parent, process.shares_memory):
            self.texts[process] = text
        else:
            self.texts[process] = text.inherited(process.memory)

    def end(self, process: TracedProcess) -> None:
        """A process image has ended."""
        self.nodes.pop(process, None)
        self.texts.pop(process, None)

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        """Prepare a child that will not be followed; False if it must be, for now."""
        text = self.texts.get(parent)
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
        number = self._isa.syscalls.numbers.get("kcmp")
        shared = None
        if number is not None and parent is not None:
            shared = shares_memory(number, tid, parent.living)
        return otherwise if shared is None else shared
