"""Code in which threads wait for each other: how often they go round in it depends on their timing alone.

What counts as such is a list of patterns ``MODULE!FUNCTION`` with ``*`` and ``?``; the module is a file's
name without its directory. LoopPoint (HPCA 2022) leaves out the whole of the synchronisation libraries; so
does the list here for those that do nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from livepro.errors import LiveproError
from livepro.formats.files import open_text
from livepro.model import BlockTable

PATTERNS = (
    # OpenMP's and POSIX's libraries of their own
    "libgomp.so*!*",
    "libomp.so*!*",
    "libiomp5.so*!*",
    "libpthread*!*",
    # glibc, whose threads are in libc.so since 2.34, and programs that it is linked into
    "*!*pthread_spin_lock",
    "*!*pthread_barrier_wait",
    "*!*pthread_mutex_lock*",
    "*!*pthread_mutex_unlock*",
    "*!*pthread_rwlock_*lock*",
    "*!*pthread_cond_*",
    "*!*pthread_join*",
    "*!*pthread_clockjoin*",
    "*!*lll_lock_wait*",
    "*!*lll_lock_wake*",
    "*!*futex_*",
    "*!*sem_wait*",
    "*!*sem_post*",
    "*!*sched_yield",
    # HotSpot
    "libjvm.so!*SpinPause*",
    "libjvm.so!*SpinYield*",
    "libjvm.so!*ObjectMonitor*Spin*",
    "libjvm.so!*Parker::park*",
    "libjvm.so!*PlatformMonitor::wait*",
    "libjvm.so!*TaskTerminator*",
    "libjvm.so!*offer_termination*",
)
"""The list that is there from the beginning."""


def read_patterns(name: str) -> list[str]:
    """The patterns in file `name`, a line each; what follows a ``#`` is a comment. Raises LiveproError for a
    line that is none, or a file that cannot be read."""
    out = []
    with open_text(name, "r") as stream:
        for number, line in enumerate(stream, 1):
            text = line.partition("#")[0].strip()
            if not text:
                continue
            if text.count("!") != 1:
                raise LiveproError(
                    f"{name}:{number}: '{text}' is no pattern.",
                    "Write MODULE!FUNCTION; * stands for anything.",
                )
            out.append(text)
    return out


def spinning(table: BlockTable, patterns: Iterable[str] = PATTERNS) -> npt.NDArray[np.bool_]:
    """Whether each block of a table (B) is in code that one of the patterns names."""
    wanted = [tuple(pattern.split("!", 1)) for pattern in patterns]
    known: dict[tuple[str, str], bool] = {}
    out = np.zeros(len(table), np.bool_)
    for row, place in enumerate(zip(table.module, table.function, strict=True)):
        if place not in known:
            known[place] = _named(*place, wanted)
        out[row] = known[place]
    return out


def _named(module: str, function: str, wanted: Sequence[tuple[str, ...]]) -> bool:
    base, called = PurePath(module).name, function.removesuffix("@plt")
    return any(fnmatchcase(base, file) and fnmatchcase(called, name) for file, name in wanted)
