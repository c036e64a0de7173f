"""A region of interest: which part of a run counts, said before it begins.

Counting is paused until a thread is about to execute the first instruction at `start`
and, from then on, `skip` instructions have been executed; it ends when a thread is about to
execute the one at `stop`, or once `count` have been counted. What `skip` and `count` say is
the sum over all threads of all processes measured. Once it has ended the processes are let go.

A place may have a count: then it is the arrival with that number which counts, of all threads, from the
beginning of the run on. An arrival is an execution of the instruction: a thread that is called away
by a signal right before it, and comes back, arrives when it does. When the arrival that counts comes, others
that have arrived before it and stand there yet count as having executed the instruction, so that
what a region has of it is the difference of the two numbers.

The thread that brings a beginning or an end about stands right before the instruction in
question; the others are where they are when it does (under the step and block engines: at
their last stop).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from livepro.engines.control import Control
from livepro.linux import proc
from livepro.linux.places import CodePlace, PlaceFinder
from livepro.model import RegionResult
from livepro.tracee import TracedProcess, TracedThread

_NOWHERE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Region:
    """From the first instruction at `start` (None: of the run), `skip` instructions later, to
    the one at `stop`, or for `count` instructions (None and 0: to the end). `start_count` and
    `stop_count` are the numbers of the arrivals there, from 1; a stop without one is the next
    arrival once counting has begun. Only those of a process's thread with the number `start_thread` and
    `stop_thread` count, in order of creation from 1 (0: of all together). Instead of a `count`, a snapshot
    may be taken `every` so many."""

    start: CodePlace | None = None
    stop: CodePlace | None = None
    skip: int = 0
    count: int = 0
    start_count: int = 1
    stop_count: int | None = None
    every: int = 0
    start_thread: int = 0
    stop_thread: int = 0

    @property
    def metered(self) -> bool:
        """Whether instructions must be counted down."""
        return self.ahead > 0

    @property
    def ahead(self) -> int:
        """Instructions from the start to the first change that their number brings about (0: none)."""
        return self.skip or self.count or self.every

    @property
    def counted(self) -> bool:
        """Whether arrivals must be."""
        return self.start_count > 1 or self.stop_count is not None or self.start_thread > 0

    def __str__(self) -> str:
        words = []
        if self.start is not None:
            words.append(f"from {self._named(self.start, self.start_count, self.start_thread)}")
        if self.skip:
            words.append(f"{self.skip:,} instructions skipped")
        if self.count:
            words.append(f"{self.count:,} counted")
        if self.every:
            words.append(f"a snapshot every {self.every:,} instructions")
        if self.stop is not None:
            words.append(f"up to {self._named(self.stop, self.stop_count or 1, self.stop_thread)}")
        return ", ".join(words)

    @staticmethod
    def _named(place: CodePlace, count: int, thread: int) -> str:
        if thread:
            return f"{place}:{count}@{thread}"
        return f"{place}:{count}" if count > 1 else str(place)


class Arrival(NamedTuple):
    """A thread stands before the instruction at `pc`. It has executed the block that begins there, number
    `row` to the engine, of `length` instructions, `executions` times before, wholly or in part."""

    pc: int
    row: int
    length: int
    executions: int


class Phase(Enum):
    """How far a run is with its region."""

    WAITING = 0  # for its start
    SKIPPING = 1
    COUNTING = 2
    OVER = 3


class Bounded(Protocol):
    """What is asked of an engine."""

    control: Control
    warnings: list[str]

    def halted(self) -> AbstractContextManager[None]:
        """Meanwhile no thread's counts change."""

    def request_detach(self) -> None:
        """Let every process go."""

    def rearm(self) -> None:
        """Other places are armed than before. Threads are halted."""

    def passing(self, arrived: Mapping[int, Arrival]) -> AbstractContextManager[None]:
        """Meanwhile, threads (by tid) that stand before the instruction that they have arrived at last
        count as having executed it; one that carries out the change does not. Threads are halted."""

    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]:
        """Threads (tid) that are elsewhere now, and have not executed the instruction that they have
        arrived at last: in a signal's handler. Threads are halted."""

    def meter(self, instructions: int) -> None:
        """Call `RegionWatch.spent` when so many more have been executed (0: never mind). Threads
        are halted."""

    @property
    def metered_left(self) -> int:
        """What is left of that."""

    def executed(self) -> int:
        """Instructions executed so far by all threads that are measured. Threads are halted."""


class RegionWatch:
    """Follows one run's region. The engine says when a thread is at an `armed` place, and when
    what it was told to `meter` is spent."""

    def __init__(self, engine: Bounded, region: Region) -> None:
        self.region = region
        self._engine = engine
        self.phase = Phase.COUNTING
        if region.start is not None:
            self.phase = Phase.WAITING
        elif region.skip:
            self.phase = Phase.SKIPPING
        engine.control.paused = self.phase is not Phase.COUNTING
        self.metering = region.metered and self.phase is not Phase.WAITING
        self._finders = [PlaceFinder(place) for place in (region.start, region.stop) if place is not None]
        sides = (region.start, region.start_thread), (region.stop, region.stop_thread)
        self._whose = [thread for place, thread in sides if place is not None]
        self._places: dict[TracedProcess, dict[proc.Mapping, tuple[frozenset[int], ...]]] = {}
        self._own: dict[TracedProcess, str] = {}
        self._met = [False] * len(self._finders)
        self._late = 0
        self._before = 0
        self._skipped: int | None = None
        self.arrivals = [0] * len(self._finders)
        """How often threads have arrived at each of the places."""
        self._seen: dict[int, Arrival] = {}
        self._threads: dict[int, TracedThread] = {}
        self._missed = False
        self.changed: Callable[[], None] | None = None
        """Told when counting has begun, and when it has ended: threads are halted."""
        self.last: tuple[TracedThread, int] | None = None
        """The thread that has arrived at a place last, and its pc there; None after a change by number."""

    # -- places

    def places(self, process: TracedProcess, mapping: proc.Mapping | None) -> frozenset[int]:
        """Where blocks must begin in a mapping, since a region may begin or end there."""
        if not self._finders or mapping is None or not mapping.stable_code:
            return _NOWHERE
        known = self._places.setdefault(process, {})
        if mapping not in known:
            known[mapping] = tuple(self._search(process, mapping, n) for n in range(len(self._finders)))
        return _NOWHERE.union(*known[mapping])

    def _search(self, process: TracedProcess, mapping: proc.Mapping, number: int) -> frozenset[int]:
        finder = self._finders[number]
        if not finder.place.module:
            own = self._own.get(process)
            if own is None:
                try:
                    own = os.path.realpath(f"/proc/{process.living}/exe")
                except OSError:
                    own = ""
                self._own[process] = own
            if mapping.path != own and finder.in_file(own):
                return _NOWHERE  # the program's own takes precedence
        found = finder.in_mapping(mapping)
        self._met[number] |= bool(found)
        return found

    def inherit(self, process: TracedProcess, parent: TracedProcess) -> None:
        """A process was born with a copy of its parent's memory."""
        self._places[process] = dict(self._places.get(parent, {}))

    def armed(self, process: TracedProcess, pc: int) -> bool:
        """Whether a thread of a process that is about to execute the instruction at `pc` brings
        about a change."""
        return any(self._at(process, pc, wanted) for wanted in self._armed)

    def _at(self, process: TracedProcess, pc: int, wanted: int) -> bool:
        """Whether `pc` is a place of that finder in a process."""
        if not process.wanted:
            return False
        return any(pc in found[wanted] for found in self._places.get(process, {}).values())

    def _counts(self, thread: TracedThread, pc: int, place: int) -> bool:
        """Whether a thread's arrival at `pc` is one at that finder's place that counts."""
        return self._whose[place] in (0, thread.number) and self._at(thread.process, pc, place)

    def armed_places(self, process: TracedProcess) -> Iterable[int]:
        """All addresses for which `armed` holds, as far as the process's code is known."""
        if not process.wanted:
            return ()
        known = self._places.get(process, {}).values()
        return {pc for wanted in self._armed for found in known for pc in found[wanted]}

    @property
    def _armed(self) -> tuple[int, ...]:
        """The finders whose places are armed: where a change is due, or arrivals are counted."""
        if self.phase is Phase.OVER or not self._finders:
            return ()
        stop = len(self._finders) - 1
        waiting = (0,) if self.phase is Phase.WAITING else ()
        counts = self.region.stop_count is not None or self.phase is Phase.COUNTING
        return (*waiting, stop) if self.region.stop is not None and counts else waiting

    # -- what happens

    def arrived(self, thread: TracedThread, arrival: Arrival) -> None:
        """A thread stands before the instruction at an armed place."""
        pc = arrival.pc
        if self._seen.get(thread.tid) == arrival:
            return  # called away before it executed the instruction
        self._seen[thread.tid] = arrival
        self._threads[thread.tid] = thread
        self.last = thread, pc
        stop = len(self.arrivals) - 1
        places = [place for place in self._armed if self._counts(thread, pc, place)]
        for place in places:
            self.arrivals[place] += 1
        if self.phase is Phase.WAITING and 0 in places and self._due(0, self.region.start_count):
            self._reached()
        elif self.phase is Phase.COUNTING and stop in places and self._due(stop, self.region.stop_count):
            self._end()
        if self.phase is not Phase.OVER and stop in places and self.arrivals[stop] == self.region.stop_count:
            self._missed = True

    def _due(self, place: int, number: int | None) -> bool:
        """Whether the arrival just counted is the one with that number (None: any)."""
        if number is None or self.arrivals[place] != number:
            return number is None
        if number == 1:
            return True
        with self._engine.halted():
            for tid in self._engine.called_away(self._seen):
                thread, pc = self._threads[tid], self._seen.pop(tid).pc
                for other in range(len(self.arrivals)):
                    self.arrivals[other] -= self._counts(thread, pc, other)
        return self.arrivals[place] == number

    def _reached(self) -> None:
        if self.region.skip:
            self._change(Phase.SKIPPING, "", self.region.skip)
        else:
            self._begin()

    def spent(self) -> None:
        """What was to be metered has been executed."""
        self.last = None
        if self.phase is Phase.SKIPPING:
            self._begin()
        elif self.phase is Phase.COUNTING and self.region.every:
            with self._engine.halted():
                self._engine.control.change("snapshot")
                self._engine.meter(self.region.every)
        elif self.phase is Phase.COUNTING:
            self._end()

    def _begin(self) -> None:
        self._change(Phase.COUNTING, "resume", self.region.count or self.region.every)

    def _end(self) -> None:
        self._change(Phase.OVER, "pause", 0)
        self._engine.request_detach()

    def _change(self, phase: Phase, command: str, meter: int) -> None:
        self.phase = phase  # first: other threads may come here while they are halted
        self.metering = meter > 0
        with self._engine.halted():
            if command:
                with self._engine.passing(self._seen if self.region.counted else {}):
                    self._engine.control.change(command)
                    if self.changed is not None and phase is not Phase.SKIPPING:
                        self.changed()
            if phase is Phase.SKIPPING:
                self._before = self._engine.executed()
            elif phase is Phase.COUNTING and self.region.skip:
                self._skipped = self._engine.executed() - self._before
            self._engine.rearm()
            self._engine.meter(meter)

    def late(self, instructions: int) -> None:
        """A change was brought about so many instructions after it was due."""
        self._late += instructions

    # -- at the end

    def finish(self) -> None:
        """The run is over."""
        last = self.metering and self._engine.metered_left <= 0  # with the last instruction of all
        if last and not (self.region.every and self.phase is Phase.COUNTING):
            self.metering = False
            self.phase = Phase.COUNTING if self.phase is Phase.SKIPPING else Phase.OVER

    def result(self) -> RegionResult:
        """What became of it."""
        began = self.phase in (Phase.COUNTING, Phase.OVER)
        to_the_end = self.region.stop is None and not self.region.count
        return RegionResult(str(self.region), began, began and (to_the_end or self.phase is Phase.OVER))

    def tell(self, counted: int) -> list[str]:
        """What the user must know about a region that is not as it was asked for, `counted`
        instructions having been counted in all."""
        region, out = self.region, []
        exceeded = counted > region.count
        short = counted < region.count and region.stop is None
        reset = self._engine.control.resets > 0
        if self._skipped not in (None, region.skip) and not self._late:
            out.append(f"{self._skipped:,} instructions were skipped instead of {region.skip:,}.")
        if self.phase is Phase.OVER and region.count and (exceeded or short) and not (self._late or reset):
            out.append(f"{counted:,} instructions were counted instead of {region.count:,}.")
        if self.phase is Phase.WAITING:
            cause = "" if self._met[0] else " No file that was mapped has such a place."
            which = "never reached"
            if self.arrivals[0]:
                which = f"reached {self.arrivals[0]:,} times, not {region.start_count:,}"
            out.append(f"{region.start}, where counting was to begin, was {which}.{cause}")
        elif self.phase is Phase.SKIPPING:
            out.append(f"Fewer than the {region.skip:,} instructions to be skipped were executed.")
        elif self.phase is Phase.COUNTING:
            if region.stop is not None:
                cause = "" if self._met[-1] else " No file that was mapped has such a place."
                out.append(f"{region.stop}, where counting was to end, was {self._unmet()}.{cause}")
            if region.count:
                out.append(f"Fewer than the {region.count:,} instructions to be counted were executed.")
        if self._late and not region.every:  # a snapshot has what there is
            out.append(f"The region began or ended {self._late} instructions late.")
        return out

    def _unmet(self) -> str:
        """How the end was not met."""
        number, arrivals = self.region.stop_count, self.arrivals[-1]
        if number is None or not arrivals:
            return "not reached"
        if self._missed:
            return f"reached for the {ordinal(number)} time before counting began"
        return f"reached {arrivals:,} times, not {number:,}"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th ..."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
