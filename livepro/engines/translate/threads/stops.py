"""The stops that threads make, in the order in which they are dealt with."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable

from livepro.engines.translate.signals.deferring import Deferral
from livepro.tracee import Tracer
from livepro.tracee.stops import ROUND, WAIT_FLAGS, next_in_turn

_POLL = 0.0003  # seconds between looks at threads while one is given time


class StopQueue:
    """Waits for the next stop. `behind` are those (tid, status) that have been heard of and are yet to be
    dealt with; `count` is how many have been dealt with. `answer`, if it is set, is called once before
    the next one is waited for: it may deal with some itself, and leaves another one behind, if any."""

    def __init__(self, tracer: Tracer, deferral: Deferral) -> None:
        self.behind: deque[tuple[int, int]] = deque()
        self.count = 0
        self.answer: Callable[[], object] | None = None
        self._tracer = tracer
        self._deferral = deferral
        self._waits = 0

    def next(self) -> tuple[int, int]:
        """The next thread that has stopped or ended, and how. Raises ChildProcessError when none is left."""
        if self.behind:
            return self.behind.popleft()
        while self._deferral.pending:
            tid, status = os.waitpid(-1, WAIT_FLAGS | os.WNOHANG)
            if tid:
                return tid, status
            self._deferral.end_late()
            time.sleep(_POLL)
        if self.answer is not None:
            answer, self.answer = self.answer, None
            answer()
            if self.behind:
                return self.behind.popleft()
        self._waits += 1
        if self._waits % ROUND:
            return os.waitpid(-1, WAIT_FLAGS)
        return next_in_turn(self._tracer.tids, self._waits)
