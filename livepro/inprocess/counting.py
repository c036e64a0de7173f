"""What a piece of Python executes, C extensions and all, to the instruction.

    from livepro.inprocess.counting import Counting

    with Counting() as n:
        work()
    print(n.instructions)

The count is the calling thread's own. What entering and leaving the `with` statement executes is
taken off: it is measured on empty ones, in code that Python has not specialised yet (PEP 659), as
the caller's is when it runs for the first time. The cycle collector is off meanwhile: when it runs
depends on everything that the process has allocated before.
"""

from __future__ import annotations

import gc
import os
from functools import cache
from types import FunctionType
from typing import Any, Self

_PATH = b"/proc/livepro/instructions/20"  # a fixed width: reading costs the same whatever the number
_ANY_LINK = b"/proc/self/exe"  # read in place of it to warm up: an ordinary call is fast
_WARM = 24  # calls; CPython specialises a function from the eighth on (3.11, QUICKENING_WARMUP_DELAY)
_TIMES = 3  # empty statements that are measured


class Counting:
    """Counts what the calling thread executes within a `with` statement. `instructions` is that, once
    it is left; None where livepro does not watch the process."""

    __slots__ = ("_collecting", "_first", "_last", "_overhead", "_path")

    def __init__(self, overhead: int | None = None, path: bytes = _PATH) -> None:
        self._overhead = own_overhead() if overhead is None else overhead
        self._path = path
        self._first = self._last = b""
        self._collecting = False

    def __enter__(self) -> Self:
        self._collecting = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            self._first = os.readlink(self._path)
        except OSError:
            self._first = b""
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._last = os.readlink(self._path)
        except OSError:
            self._last = b""
        if self._collecting:
            gc.enable()

    @property
    def instructions(self) -> int | None:
        """The count."""
        if not (self._first.isdigit() and self._last.isdigit()):
            return None
        return int(self._last) - int(self._first) - self._overhead


@cache
def own_overhead() -> int:
    """What an empty `with Counting()` executes between its two readings; 0 where livepro does not watch
    the process."""
    for _ in range(_WARM):
        with Counting(0, _ANY_LINK):
            pass
    counts = [_empty() for _ in range(_TIMES)]
    return min(count for count in counts if count is not None) if None not in counts else 0


def _empty() -> int | None:
    """The count of an empty statement in code that has never run."""

    def function(counting: Counting) -> None:
        with counting as _n:
            pass

    fresh: Any = FunctionType(function.__code__.replace(co_name="fresh"), globals())
    counting = Counting(0)
    fresh(counting)
    return counting.instructions
