"""One thread's characterisation: its records become events, its analyses see them, interval by interval."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import FLOWS, StaticTables
from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.crew import Crew
from livepro.mica.facts import Facts
from livepro.mica.flattening import (
    ALL,
    BRANCHES,
    CUTS,
    EVENTS,
    HELD,
    INSTRUCTION,
    RETIRED,
    SIZE,
    Events,
    flatten,
)
from livepro.mica.settings import MicaDialect, Settings
from livepro.model import Flow

_BRANCH = FLOWS.index(Flow.BRANCH)


class Interval(NamedTuple):
    """`instructions` retired in an interval, `events` in it (every repetition of a string instruction is
    one), and the numbers of each analysis."""

    instructions: int
    events: int
    values: dict[str, list[int]]


def analyses_of(settings: Settings, groups: int) -> dict[str, Analysis]:
    """New states of what is asked for, with so many `groups` of instruction types; `ilp` and `ilp_one` share
    one, so do the two of stack distances."""
    from livepro.mica.analyses.footprint import Footprint
    from livepro.mica.analyses.ilp import Ilp
    from livepro.mica.analyses.itypes import Itypes
    from livepro.mica.analyses.ppm import Ppm
    from livepro.mica.analyses.reg import Reg
    from livepro.mica.analyses.stackdist import StackDist
    from livepro.mica.analyses.stride import Stride

    asked = settings.analyses
    out: dict[str, Analysis] = {}
    if settings.windows:
        out["ilp"] = Ilp(settings, settings.windows)
    if "itypes" in asked:
        out["itypes"] = Itypes(groups)
    if "ppm" in asked:
        out["ppm"] = Ppm(-1 if settings.ppm_initial is None else settings.ppm_initial)
    if "reg" in asked:
        out["reg"] = Reg()
    if "stride" in asked:
        out["stride"] = Stride()
    if "memfootprint" in asked:
        out["memfootprint"] = Footprint(settings.block_size, settings.page_size)
    if "memstackdist" in asked or "fullmemstackdist" in asked:
        out["memstackdist"] = StackDist(settings.block_size)
    return out


class Characterised:
    """A thread under characterisation. `intervals` are those that have ended."""

    def __init__(self, settings: Settings, facts: Facts, events: Events, crew: Crew) -> None:
        self.analyses = analyses_of(settings, len(facts.group_names))
        self.intervals: list[Interval] = []
        self.instructions = 0
        self.events = 0
        self._settings = settings
        self._facts = facts
        self._events = events
        self._crew = crew
        self._mica = settings.dialect is MicaDialect.MICA
        self._cursor = np.zeros(6, np.int64)
        self._counters = np.array([0, settings.interval_size, 0], np.int64)
        self._rest = np.zeros(0, np.int64)
        self._in_interval = 0

    def see(self, words: npt.NDArray[np.int64], tables: StaticTables, *, final: bool = False) -> None:
        """Take in the next records of its stream; `final` says that there will be no more."""
        if len(self._rest):
            words = np.concatenate((self._rest, words))
        self._cursor[:] = 0
        self._cursor[INSTRUCTION] = -1
        self._facts.update()
        events, more = self._events, True
        while more:
            more = flatten(
                *(words, self._cursor, final, self._mica, self._counters, tables.first, tables.words),
                *(tables.address.view(np.int64), tables.bytes, tables.flow, _BRANCH),
                *(tables.access, tables.pattern, tables.size, tables.kind, tables.lanes),
                *events.arrays(),
            )
            self._analyse()
        self._rest = words[self._cursor[0] :].copy() if events.out[HELD] else words[:0]

    def _analyse(self) -> None:
        events = self._events
        begin = first_branch = 0
        for end, branch, retired in events.cuts[: events.out[CUTS]].tolist():
            self._take(Slice(events, begin, end, first_branch, branch))
            self._cut(retired)
            begin, first_branch = end, branch
        self._take(Slice(events, begin, int(events.out[EVENTS]), first_branch, int(events.out[BRANCHES])))
        self.instructions = int(self._counters[ALL])

    def _take(self, part: Slice) -> None:
        if part.end > part.begin:
            self._crew.see(self.analyses.values(), part, self._facts)
            self._in_interval += part.end - part.begin
            self.events += part.end - part.begin

    def _cut(self, retired: int) -> None:
        values = self.current()
        self.intervals.append(Interval(retired, self._in_interval, values))
        for analysis in self.analyses.values():
            analysis.next_interval()
        self._in_interval = 0

    def current(self) -> dict[str, list[int]]:
        """The numbers of the interval under way."""
        out: dict[str, list[int]] = {}
        for name, analysis in self.analyses.items():
            values: Any = analysis.values()
            if name == "ilp":
                if "ilp" in self._settings.analyses:
                    out["ilp"] = values[:4]
                if "ilp_one" in self._settings.analyses:
                    out["ilp_one"] = values[-1:]
            elif name == "memstackdist":
                if "memstackdist" in self._settings.analyses:
                    out["memstackdist"] = values
                if "fullmemstackdist" in self._settings.analyses:
                    from livepro.mica.analyses.stackdist import StackDist

                    assert isinstance(analysis, StackDist)
                    out["fullmemstackdist"] = analysis.full_values()
            else:
                out[name] = values
        return out

    def footprint(self) -> tuple[npt.NDArray[np.int64], ...]:
        """All blocks and pages of data, blocks and pages of code, by number."""
        from livepro.mica.analyses.footprint import Footprint

        analysis = self.analyses["memfootprint"]
        assert isinstance(analysis, Footprint)
        return analysis.everything()

    def finish(self, tables: StaticTables) -> None:
        """The stream has ended: what is under way becomes the last interval, even if it is empty."""
        self.see(np.zeros(0, np.int64), tables, final=True)
        if self._counters[SIZE]:
            self._cut(int(self._counters[RETIRED]))
            self._counters[RETIRED] = 0
