"""One analysis that takes in a thread's records by itself, without spans being made of most of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.feeding import Slice, flattened
from livepro.events.spans.flattening import AT, BRANCHES, EVENTS, HELD, SPANS, TOTAL, Events
from livepro.mica.settings import Settings
from livepro.mica.thread import Characterised

READERS = ("stride", "memfootprint")
"""Analyses that can."""
_STEP = 512
"""Words of which spans are made where there is something else than plain blocks: to hand over that many costs
less than to look at them."""


def reads_alone(settings: Settings) -> bool:
    """Whether what is asked for is one such analysis, of the whole run."""
    return len(settings.analyses) == 1 and settings.analyses[0] in READERS and not settings.interval_size


class ReadingThread(Characterised):
    """A thread under such a characterisation (`livepro.events.spans.feeding.Reader`)."""

    _tables: StaticTables

    def see(self, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """See `Characterised`."""
        self._tables = tables
        super().see(words, tables)

    def read(
        self,
        words: npt.NDArray[np.int64],
        upto: int,
        cursor: npt.NDArray[np.int64],
        final: bool,
        counters: npt.NDArray[np.int64],
        noted: npt.NDArray[np.uint8],
        events: Events,
    ) -> bool:
        """See `Reader`."""
        facts, tables = self._facts, self._tables
        (analysis,) = self.analyses.values()
        self._crew.wait()
        facts.plain.update(tables, facts.listing, facts.sites)
        while True:
            at, executed = analysis.read(words, upto, int(cursor[AT]), facts)
            cursor[AT] = at
            counters[TOTAL] += executed
            self.events += executed
            if at >= upto:
                return False
            more, held = True, False
            while more:
                step = min(upto, at + _STEP)
                more = flattened(words, step, cursor, final, facts.listing, counters, tables, noted, events)
                spans, branches, made = (int(events.out[which]) for which in (SPANS, BRANCHES, EVENTS))
                analysis.see(Slice(events, 0, spans, 0, branches, made), facts)
                self.events += made
                held = bool(events.out[HELD])
                events.clear()
            if held:
                return True
