"""Lets the analyses of a slice of events work side by side: their kernels hold no lock of Python's."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.facts import Facts

WORTH = 4096
"""Events of a slice from which on handing it over costs less than it brings."""


class Crew:
    """As many threads as there are processors; none before there is work for two. `worth`: the events of
    the smallest slice that is handed over."""

    def __init__(self, processors: int | None = None, worth: int = WORTH) -> None:
        self._worth = worth
        self._processors = processors or len(os.sched_getaffinity(0))
        self._pool: ThreadPoolExecutor | None = None

    def see(self, analyses: Collection[Analysis], part: Slice, facts: Facts) -> None:
        """Have all `analyses` take in `part`; each is a state of its own, and has seen it at the return."""
        if self._processors < 2 or len(analyses) < 2 or part.end - part.begin < self._worth:
            for analysis in analyses:
                analysis.see(part, facts)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._processors, "livepro-mica")
        for done in [self._pool.submit(analysis.see, part, facts) for analysis in analyses]:
            done.result()

    def dismiss(self) -> None:
        """There is no more work; the threads end."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
