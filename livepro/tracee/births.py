"""Children that ask for another way of being traced: they are traced as all are, and do not see that.

A child made with CLONE_UNTRACED would run into livepro's breakpoints with nobody to answer them, and of
one made with CLONE_PTRACE as well nobody would be told. Without a tracer neither flag means anything
(kernel/fork.c). So the call is made without them, and what the program can see of that (the argument of
clone, the structure of clone3) is put back, in the child, too, before it executes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from livepro.linux import proc, ptrace
from livepro.tracee.process import Layout, TracedThread
from livepro.tracee.stops import unless_killed

_OTHERWISE = 0x0080_0000 | 0x2000  # CLONE_UNTRACED, CLONE_PTRACE: include/uapi/linux/sched.h
_SIZE = 8  # bytes of the flags in clone3's structure, its first field


class CallLayout(Layout, Protocol):
    """The registers of system calls by name (see `isa.base.RegisterLayout`)."""

    @property
    def syscall_number(self) -> str: ...
    @property
    def syscall_arguments(self) -> tuple[str, ...]: ...
    @property
    def syscall_result(self) -> str: ...


class _Change(NamedTuple):
    """What a thread's flags were, and where they are in memory (0: in the register of the first argument)."""

    flags: int
    address: int

    @property
    def made(self) -> int:
        """What has been put in their place."""
        return self.flags & ~_OTHERWISE


class Births:
    """Takes both flags off calls of clone and clone3, by the `numbers` of those calls."""

    def __init__(self, layout: CallLayout, numbers: Mapping[str, int]) -> None:
        self._layout = layout
        self._argument = layout.syscall_arguments[0]
        self._clone, self._clone3 = numbers.get("clone"), numbers["clone3"]
        self._changed: dict[TracedThread, _Change] = {}
        self._due: dict[int, _Change] = {}

    def before(self, thread: TracedThread, registers: Any) -> None:
        """A stopped thread, whose `registers` these are, is about to make a system call."""
        number = getattr(registers, self._layout.syscall_number)
        if number == self._clone3:
            address = getattr(registers, self._argument)
            flags = int.from_bytes(thread.read(address, _SIZE), "little")
        elif number == self._clone:
            address, flags = 0, getattr(registers, self._argument)
        else:
            return
        if flags & _OTHERWISE:
            change = _Change(flags, address)
            self._put(thread.tid, thread.process.memory, change, change.flags, change.made)
            self._changed[thread] = change

    def settle(self, thread: TracedThread) -> None:
        """A thread has stopped: if it had asked for a child, what it asked with is as it was."""
        change = self._changed.pop(thread, None)
        if change is not None:
            self._put(thread.tid, thread.process.memory, change, change.made, change.flags)

    def born(self, parent: TracedThread, tid: int) -> None:
        """A thread has been told to have made a child, `tid`, which is yet to begin."""
        change = self._changed.get(parent)
        self._due.pop(tid, None)
        if change is not None:
            self._due[tid] = change
            self.settle(parent)

    def begin(self, tid: int) -> None:
        """A child has stopped, before its first instruction."""
        change = self._due.pop(tid, None)
        if change is not None and (change.address or self._argument != self._layout.syscall_result):
            memory = proc.Memory(tid)
            try:
                self._put(tid, memory, change, change.made, change.flags)
            finally:
                memory.close()

    def _put(self, tid: int, memory: proc.Memory, change: _Change, old: int, new: int) -> None:
        """Make flags `new` that are `old`, of a thread that has not been killed."""
        with unless_killed(tid):
            if change.address:
                if memory.read(change.address, _SIZE) == old.to_bytes(_SIZE, "little"):
                    memory.write(change.address, new.to_bytes(_SIZE, "little"))
                return
            registers = ptrace.get_registers(tid, self._layout.structure)
            if getattr(registers, self._argument) == old:
                setattr(registers, self._argument, new)
                ptrace.set_registers(tid, registers)
