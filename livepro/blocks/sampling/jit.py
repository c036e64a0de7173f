"""Code that is in no file: whose it is, and its bytes, asked for while the process lives.

HotSpot tells of its compiled methods by its own tables (`jvm`); other JIT compilers write
perf maps or jitdump files (`names`).
"""

from __future__ import annotations

import time
from typing import NamedTuple

from livepro.jvm.labels import Labeller
from livepro.linux import proc
from livepro.linux.proc import AddressSpace, Memory
from livepro.names.generated import GeneratedNames

_LARGEST = 1 << 20
"""Bytes of one piece of code that are read."""

_LOOK_EVERY = 0.1
"""Seconds between two looks for news in a process's files, unless an address is not known."""


class Piece(NamedTuple):
    """Code that was made at run time, at [start, end) in process `pid`."""

    pid: int
    start: int
    end: int
    name: str
    code: bytes


class GeneratedCode:
    """The generated code of the processes sampled."""

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}

    def find(self, pid: int, address: int) -> Piece | None:
        """The piece that holds an address now; None where nothing tells."""
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = _Process(pid)
        return process.find(address)

    def close(self) -> None:
        """Give the processes' memory back."""
        for process in self._processes.values():
            process.close()


class _Process:
    """One process. It may end at any moment: then no more can be told."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._memory: Memory | None = None
        self._labeller: Labeller | None = None
        self._pieces: dict[tuple[int, int, str], Piece] = {}
        self._names: GeneratedNames | None = None
        self._looked = 0.0
        try:
            self._memory = Memory(pid)
        except OSError:
            return
        self._labeller = Labeller(self, lambda start, end: None)
        self._names = GeneratedNames(self)

    @property
    def space(self) -> AddressSpace:
        """Its mappings."""
        try:
            return proc.address_space(self.pid)
        except OSError:
            return AddressSpace([])

    @property
    def memory(self) -> Memory:
        """Its memory."""
        assert self._memory is not None
        return self._memory

    def find(self, address: int) -> Piece | None:
        if self._memory is None or self._labeller is None:
            return None
        named = self._named(address)
        if named is None:
            return None
        start, end, name = named
        known = self._pieces.get(named)
        code = self._memory.read(start, min(end - start, _LARGEST))
        if known is not None and (not code or known.code == code):
            return known
        if not code:
            return None
        piece = self._pieces[named] = Piece(self.pid, start, end, name, code)
        return piece

    def _named(self, address: int) -> tuple[int, int, str] | None:
        assert self._labeller is not None
        assert self._names is not None
        self._labeller.look_again()
        label = self._labeller.label(address)
        if label is not None:
            extent = self._labeller.extent(address)
            return None if extent is None else (*extent, label.name or str(label.origin))
        now = time.monotonic()
        code = self._names.code(address)
        if code is None or now - self._looked > _LOOK_EVERY:
            self._names.look()
            self._looked = now
            code = self._names.code(address)
        return code

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
