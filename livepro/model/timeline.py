"""How fast a run went, from beginning to end."""

from __future__ import annotations

from typing import NamedTuple


class TimelineThread(NamedTuple):
    """One thread: at each of the timeline's moments (from the `first` one that it was seen at) the
    instructions and SIMD instructions that it had executed so far."""

    pid: int
    tid: int
    name: str
    program: str
    first: int
    instructions: tuple[int, ...]
    simd: tuple[int, ...]


class TimelinePhase(NamedTuple):
    """A stretch of the run, `seconds` long, and the phase (from 0; -1 where nothing was executed)
    that most of it was of."""

    seconds: float
    phase: int


class Timeline(NamedTuple):
    """The moments at which the run was looked at (`seconds` since its start), and what the `threads` and the
    `whole` run had executed by then. The counts were read while the threads ran: each is
    true of some instant around its moment. `left_out` threads are in the whole only."""

    seconds: tuple[float, ...]
    instructions: tuple[int, ...]
    simd: tuple[int, ...]
    threads: tuple[TimelineThread, ...]
    phases: tuple[TimelinePhase, ...]
    left_out: int
