"""Names for code that a process makes, by what its JIT compilers write down for perf.

`/tmp/perf-PID.map` and jitdump files are read again whenever code is new. A later entry takes the place
of earlier ones that it overlaps.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Protocol

from livepro.linux.proc import AddressSpace, status_field
from livepro.names.jitdump import JitDump
from livepro.names.perfmap import GrowingFile, NamedCode, PerfMap

_DUMP = re.compile(r".*/jit-\d+\.dump")
_MAPS = "tmp"  # below the root directory: tools/perf/Documentation/jit-interface.txt in Linux
_SLACK = 2.0
"""Seconds that a file may seem older than its process: the kernel's clocks tick (jiffies)."""


class Process(Protocol):
    """A process, see `tracee.TracedProcess`."""

    pid: int

    @property
    def space(self) -> AddressSpace: ...


class GeneratedNames:
    """What the code that one process makes is called, as far as it says."""

    def __init__(self, process: Process) -> None:
        self._process = process
        owner, since = _owner(process.pid), _started(process.pid) - _SLACK
        self._file = owner, since
        self._sources: list[PerfMap | JitDump] = [
            PerfMap(GrowingFile(path, owner, since)) for path in _maps(process.pid)
        ]
        self._space: AddressSpace | None = None
        self._dumps: set[str] = set()
        self._starts: list[int] = []
        self._codes: dict[int, NamedCode] = {}

    def look(self) -> list[tuple[int, int]]:
        """Read what has been added since the last time. Returns the ranges whose code had another name
        before."""
        self._find_dumps()
        renamed = []
        for source in self._sources:
            for code in source.news():
                renamed += self._remember(code)
        return renamed

    def find(self, pc: int) -> str:
        """The name of the code at `pc`, empty where there is none."""
        code = self.code(pc)
        return "" if code is None else code.name

    def code(self, pc: int) -> NamedCode | None:
        """What holds `pc`, with its name; None where nothing told of it."""
        at = bisect_right(self._starts, pc) - 1
        code = self._codes[self._starts[at]] if at >= 0 else None
        return code if code is not None and pc < code.end else None

    def fork(self, process: Process) -> GeneratedNames:
        """The names of a forked child: those of its parent, and what it makes itself."""
        child = GeneratedNames(process)
        child._starts, child._codes = self._starts.copy(), self._codes.copy()
        return child

    def _find_dumps(self) -> None:
        space = self._process.space
        if space is self._space:
            return
        self._space = space
        for mapping in space.mappings:
            if mapping.executable and mapping.path not in self._dumps and _DUMP.fullmatch(mapping.path):
                self._dumps.add(mapping.path)
                inside = f"/proc/{self._process.pid}/root{mapping.path}"
                path = inside if os.path.exists(inside) else mapping.path
                self._sources.append(JitDump(GrowingFile(path, *self._file)))

    def _remember(self, code: NamedCode) -> list[tuple[int, int]]:
        """Take down code, in the place of what it overlaps; returns the ranges that had other names."""
        starts = self._starts
        first = bisect_right(starts, code.start)
        if first and self._codes[starts[first - 1]].end > code.start:
            first -= 1
        last = bisect_left(starts, code.end)
        gone = [self._codes.pop(start) for start in starts[first:last]]
        starts[first:last] = [code.start]
        self._codes[code.start] = code
        return [(old.start, old.end) for old in gone if old != code]


def _maps(pid: int) -> list[str]:
    """Where a process's perf map may be: in its own root directory and by its own idea of its pid, and, for
    when it has ended, in ours."""
    try:
        inside = status_field(pid, "NSpid").split()[-1]
    except (OSError, KeyError, IndexError):
        inside = str(pid)
    theirs, ours = (Path(root, _MAPS) for root in (f"/proc/{pid}/root", os.sep))
    paths = [str(theirs / f"perf-{inside}.map"), str(ours / f"perf-{pid}.map")]
    try:
        same = theirs.samefile(ours)
    except OSError:
        same = True
    # The way through /proc ends with the process.
    return paths[1:] if same and inside == str(pid) else paths


def _owner(pid: int) -> int:
    """The user whose process it is; livepro's own for one that has ended."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return os.geteuid()


def _started(pid: int) -> float:
    """When a process was started, in seconds since the epoch; livepro's own start for one that has ended."""
    for path in (f"/proc/{pid}/stat", "/proc/self/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                ticks = int(file.read().rpartition(")")[2].split()[19])  # starttime, proc_pid_stat(5)
        except OSError:
            continue
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - age
    return time.time()
