"""Code that is in no file: whose it is, and its bytes, asked for while the process lives.

HotSpot tells of its compiled methods by its own tables (`jvm`); other JIT compilers write
a perf map, /tmp/perf-PID.map, with lines ``START SIZE NAME`` in hexadecimal (the kernel's
tools/perf/Documentation/jit-interface.txt).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from livepro.jvm.labels import Labeller
from livepro.linux import proc
from livepro.linux.proc import AddressSpace, Memory

_LARGEST = 1 << 20
"""Bytes of one piece of code that are read."""


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
        self._pid = pid
        self._memory: Memory | None = None
        self._labeller: Labeller | None = None
        self._pieces: dict[tuple[int, int, str], Piece] = {}
        self._map_size = -1
        self._map: list[tuple[int, int, str]] = []
        try:
            self._memory = Memory(pid)
        except OSError:
            return
        self._labeller = Labeller(self, lambda start, end: None)

    @property
    def space(self) -> AddressSpace:
        """Its mappings."""
        try:
            return proc.address_space(self._pid)
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
        piece = self._pieces[named] = Piece(self._pid, start, end, name, code)
        return piece

    def _named(self, address: int) -> tuple[int, int, str] | None:
        assert self._labeller is not None
        self._labeller.look_again()
        label = self._labeller.label(address)
        if label is not None:
            extent = self._labeller.extent(address)
            return None if extent is None else (*extent, label.name or str(label.origin))
        self._read_map()
        at = bisect_right(self._map, address, key=lambda row: row[0]) - 1
        return self._map[at] if at >= 0 and address < self._map[at][1] else None

    def _read_map(self) -> None:
        """Read the perf map, if it has grown; of two entries for one address the later one holds."""
        for path in (f"/tmp/perf-{self._pid}.map", f"/proc/{self._pid}/root/tmp/perf-{self._pid}.map"):
            try:
                size = os.stat(path).st_size
                if size == self._map_size:
                    return
                text = Path(path).read_text(errors="replace")
            except OSError:
                continue
            self._map_size = size
            self._map = parse_map(text)
            return

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()


def parse_map(text: str) -> list[tuple[int, int, str]]:
    """(start, end, name) of a perf map's lines, ascending; lines of another form are left out."""
    found: dict[int, tuple[int, int, str]] = {}
    for line in text.splitlines():
        fields = line.split(maxsplit=2)
        try:
            start, size = int(fields[0], 16), int(fields[1], 16)
        except (ValueError, IndexError):
            continue
        found[start] = (start, start + size, fields[2] if len(fields) > 2 else "")
    return sorted(found.values())
