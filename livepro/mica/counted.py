"""Instruction types without a stream of all that a thread executes: from how often its blocks were executed,
and records of those that repeat instructions."""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream import COUNT_SHIFT, FLAGS, FLAGS_SHIFT, GOES_ON, INTERRUPTED, NUMBER, PARTIAL
from livepro.engines.stream.blocks import StaticTables, executed_instructions
from livepro.engines.stream.recorder import Partial
from livepro.events.spans.column import grown
from livepro.isa.access import Pattern
from livepro.mica.analyses.base import Analysis
from livepro.mica.analyses.itypes import Itypes
from livepro.mica.facts import Facts
from livepro.mica.settings import MicaDialect, Settings
from livepro.mica.thread import Interval

_ONE, _STRING, _LANES = int(Pattern.ONE), int(Pattern.STRING), int(Pattern.LANES)


def counts_alone(settings: Settings) -> bool:
    """Whether counts are enough for what is asked for."""
    return settings.analyses == ("itypes",) and not settings.interval_size


@njit(nogil=True, cache=True)
def count_repetitions(words, first, access_of, pattern, bytes_of, lanes_of, more, never):
    """Add to `more`, by instruction, the events of repeated ones that their executions are not, and to
    `never` those of which there was no repetition: one event each."""
    at = 0
    while at < len(words):
        head = words[at]
        flags = head >> FLAGS_SHIFT & FLAGS
        if flags & GOES_ON:
            at += 2
            continue
        number = head & NUMBER
        begin, executed = first[number], first[number + 1]
        end = executed
        if flags & PARTIAL:
            executed = begin + (head >> COUNT_SHIFT)
            end = executed + (1 if flags & INTERRUPTED else 0)
        at += 1
        for i in range(begin, end):
            for a in range(access_of[i], access_of[i + 1]):
                how = pattern[a]
                if how == _STRING and a == access_of[i]:
                    turns = abs(words[at + 1] - words[at]) // bytes_of[a]
                    if i >= executed:
                        more[i] += turns
                    elif turns:
                        more[i] += turns - 1
                    else:
                        never[i] += 1
                at += 1 if how == _ONE else (1 + lanes_of[a] if how == _LANES else 2)


class CountedThread:
    """A thread's instruction types, with what is asked of one under characterisation
    (`livepro.mica.thread.Characterised`)."""

    def __init__(self, settings: Settings, facts: Facts) -> None:
        self._itypes = Itypes(len(facts.group_names))
        self.analyses: dict[str, Analysis] = {"itypes": self._itypes}
        self.intervals: list[Interval] = []
        self.instructions = self.events = 0
        self._facts = facts
        self._original = settings.dialect is MicaDialect.MICA
        self._more, self._never = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
        self._counts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Partial]] = []

    def see(self, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """Take in the next records of blocks that repeat instructions."""
        self._more = grown(self._more, len(tables.address))
        self._never = grown(self._never, len(tables.address))
        asked: tuple[Any, ...] = (
            *(words, tables.first, tables.access, tables.pattern, tables.size, tables.lanes),
            *(self._more, self._never),
        )
        count_repetitions(*asked)

    def executed(
        self, numbers: npt.NDArray[np.int64], times: npt.NDArray[np.int64], partial: Partial
    ) -> None:
        """See `livepro.events.pump.Counting`."""
        self._counts.append((numbers, times, partial))

    def finish(self, tables: StaticTables) -> None:
        """The stream has ended."""
        facts = self._facts
        facts.listing.update(tables)
        facts.update()
        events = np.zeros(len(facts.types), np.int64)
        for numbers, times, partial in self._counts:
            runs = executed_instructions(tables, numbers, times, partial)
            events[: len(runs)] += runs
        self._counts = []
        self.instructions = int(events.sum())
        if self._original:  # to which an instruction with no repetition is none
            self.instructions -= int(self._never.sum())
        more = self._more[: len(events)]
        events[: len(more)] += more
        self.events = int(events.sum())
        self._itypes.add(events, facts)

    def current(self) -> dict[str, list[int]]:
        """The numbers of the whole run."""
        return {"itypes": self._itypes.values()}

    def footprint(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Nothing: it is not asked for."""
        return ()
