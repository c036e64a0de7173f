"""One thread's characterisation: its records become events, its analyses see them, interval by interval."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import Feed, Slice, Taker
from livepro.events.spans.region import RegionFeed
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts
from livepro.mica.settings import WINDOWS, Settings


class Interval(NamedTuple):
    """`instructions` retired in an interval, `events` in it (every repetition of a string instruction is
    one), and the numbers of each analysis."""

    instructions: int
    events: int
    values: dict[str, list[int]]


def analyses_of(settings: Settings, groups: int) -> dict[str, Analysis]:
    """New states of what is asked for, with so many `groups` of instruction types; the two of stack
    distances share one."""
    from livepro.mica.analyses.footprint import Footprint
    from livepro.mica.analyses.ilp import Ilp
    from livepro.mica.analyses.itypes import Itypes
    from livepro.mica.analyses.ppm import Ppm
    from livepro.mica.analyses.reg import Reg
    from livepro.mica.analyses.stackdist import StackDist
    from livepro.mica.analyses.stride import Stride

    asked = settings.analyses
    out: dict[str, Analysis] = {}
    if "ilp" in asked:
        out["ilp"] = Ilp(settings, WINDOWS)
    if "ilp_one" in asked:
        out["ilp_one"] = Ilp(settings, (settings.ilp_size,))
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
    """A thread under characterisation. `intervals` are those that have ended; `feed` makes what feeds its
    records to it."""

    def __init__(
        self,
        settings: Settings,
        facts: Facts,
        crew: Crew,
        feed: Callable[[Taker], Feed | RegionFeed],
    ) -> None:
        self.analyses = analyses_of(settings, len(facts.group_names))
        self.intervals: list[Interval] = []
        self.events = 0
        self._settings = settings
        self._facts = facts
        self._crew = crew
        self._feed = feed(self)
        self._in_interval = 0

    @property
    def instructions(self) -> int:
        """All that have retired."""
        return self._feed.instructions

    def see(self, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """Take in the next records of its stream."""
        self._facts.update()
        self._feed.see(words, tables)

    def take(self, part: Slice) -> None:
        """See `Taker`."""
        longest_first = sorted(self.analyses.values(), key=lambda analysis: -analysis.effort)
        self._crew.do([partial(analysis.see, part, self._facts) for analysis in longest_first], part.executed)
        self._in_interval += part.executed
        self.events += part.executed

    def cut(self, retired: int) -> None:
        """See `Taker`."""
        self._crew.wait()
        self.intervals.append(Interval(retired, self._in_interval, self.current()))
        for analysis in self.analyses.values():
            analysis.next_interval()
        self._in_interval = 0

    def current(self) -> dict[str, list[int]]:
        """The numbers of the interval under way."""
        out: dict[str, list[int]] = {}
        for name, analysis in self.analyses.items():
            values: Any = analysis.values()
            if name == "memstackdist":
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
        self._feed.finish(tables)
        self._crew.wait()
