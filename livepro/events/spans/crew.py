"""Lets analyses of a slice of events work side by side, and while the next slice is made: their kernels hold
no lock of Python's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

WORTH = 4096
"""Events of a slice from which on handing it over costs less than it brings."""


class Crew:
    """As many threads as there are processors; none before there is work for one. `worth`: the events of
    the smallest slice that is handed over."""

    def __init__(self, processors: int | None = None, worth: int = WORTH) -> None:
        self._worth = worth
        self._processors = processors or len(os.sched_getaffinity(0))
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: list[Future[None]] = []

    def do(self, tasks: Sequence[Callable[[], None]], events: int) -> None:
        """Have all `tasks` done, each with a state of its own, over so many events; the longest should be
        first. They may be under way still at the return, but all those of before are done."""
        self.wait()
        if self._processors < 2 or events < self._worth:
            for task in tasks:
                task()
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._processors, "livepro-events")
        self._under_way = [self._pool.submit(task) for task in tasks]

    def wait(self) -> None:
        """Return once all is done. Raises what a task has raised."""
        under_way, self._under_way = self._under_way, []
        for done in under_way:
            done.result()

    def dismiss(self) -> None:
        """There is no more work; the threads end."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
