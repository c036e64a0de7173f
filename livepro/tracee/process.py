"""One traced process image and its threads."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Protocol

from livepro.linux import proc, ptrace
from livepro.linux.wait import shell_status


class Layout(Protocol):
    """The registers a tracee needs by name (see `isa.base.RegisterLayout`)."""

    @property
    def structure(self) -> type[ctypes.Structure]: ...
    @property
    def pc(self) -> str: ...
    @property
    def pc_user_offset(self) -> int | None: ...


class TracedProcess:
    """One image of a process: exec ends it and begins the next under the same pid.

    `image` numbers the images of a pid from 0, `exit` is None until the
    process has ended (as a shell reports it). `wanted` is False for a child
    that is to be let go as soon as it has memory of its own. `attached` says that
    the image was not traced from its beginning. `options` are the ptrace options of its threads. `lent`
    has the registers, the signal mask and the siginfo of threads, by tid, that make a call for livepro
    just now (`lending`).
    """

    def __init__(
        self,
        pid: int,
        ppid: int,
        image: int,
        command: tuple[str, ...],
        options: int,
        shares_memory: bool = False,
    ) -> None:
        self.pid = pid
        self.ppid = ppid
        self.image = image
        self.command = command
        self.options = options
        self.shares_memory = shares_memory
        self.suspends = 0
        """The thread that waits inside its vfork until this image ends, 0 if none does."""
        self.exit: int | None = None
        self.measured = True
        self.wanted = True
        self.attached = False
        self.threads: list[TracedThread] = []
        self.births: set[int] = set()
        """When its threads were created (`TracedThread.born`), those too that have not been seen yet."""
        self.lent: dict[int, tuple[Any, int, ptrace.SignalInfo | None]] = {}
        self.memory = proc.Memory(pid)
        self._space: proc.AddressSpace | None = None

    @property
    def space(self) -> proc.AddressSpace:
        """The process's mappings, read again after `remapped`."""
        if self._space is None:
            for tid in (self.pid, *(thread.tid for thread in self.threads)):
                with contextlib.suppress(OSError):
                    space = proc.address_space(tid)
                    if space.mappings:  # else that thread has ended: its process's first may, before others
                        self._space = space
                        return space
            return proc.AddressSpace([])
        return self._space

    @property
    def living(self) -> int:
        """A thread of it that has not ended. The first one may, before others: then the kernel shows
        nothing by the process's pid of what all threads share (memory, descriptors, program)."""
        if proc.thread_state(self.pid) in "ZX":
            with contextlib.suppress(ProcessLookupError):
                for tid in proc.threads(self.pid):
                    if proc.thread_state(tid) not in "ZX":
                        return tid
        return self.pid

    def remapped(self) -> None:
        """Say that the mappings may have changed."""
        self._space = None

    def settled(self) -> None:
        """Keep of the mappings those with code: nothing more will be executed, but code that is named late
        may still be asked for. (A run may have thousands of processes.)"""
        if self._space is not None:
            self._space = proc.AddressSpace([m for m in self._space.mappings if m.executable])

    def ended(self, status: int) -> None:
        """Take down the wait status with which the process ended."""
        self.exit = shell_status(status)
        self.memory.close()


class TracedThread:
    """One traced thread. Its methods need it stopped, and raise OSError when it is gone.

    `born` orders threads by their creation (0: the first of its process), which
    is not always the order in which they are first seen. `attached` says that it was
    running when it was taken over.
    """

    def __init__(self, tid: int, process: TracedProcess, layout: Layout, born: int = 0) -> None:
        self.tid = tid
        self.process = process
        self.layout = layout
        self.born = born
        self.attached = False
        self._name = ""
        process.threads.append(self)
        process.births.add(born)
        self.remember_name()

    @property
    def number(self) -> int:
        """Its place among the threads of its process in order of their creation, from 1."""
        return 1 + sum(born < self.born for born in self.process.births)

    def registers(self) -> Any:
        """The general registers, as the layout's structure."""
        return ptrace.get_registers(self.tid, self.layout.structure)

    def set_registers(self, registers: Any) -> None:
        """Set the general registers."""
        ptrace.set_registers(self.tid, registers)

    def read(self, address: int, size: int) -> bytes:
        """Up to `size` bytes of memory, fewer where the mapping ends."""
        return self.process.memory.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write memory, whatever its protection."""
        self.process.memory.write(address, data)

    def remember_name(self) -> None:
        """Take down the thread's name while there is still someone to ask."""
        self._name = proc.thread_name(self.tid) or self._name

    @property
    def name(self) -> str:
        """The thread's name: the last known of a thread that is gone, else the present one."""
        return self._name or proc.thread_name(self.tid)
