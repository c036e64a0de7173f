"""A run as a live view is given it: the latest picture, and what can be done to the run."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from livepro.live.collector import Collector
from livepro.model import RunResult
from livepro.model.live import Picture, Query

EVERY = 0.25
"""Seconds between two looks at the run."""

LEAN = 8
"""A look is followed by at least this many times its own CPU time without one: looking must not
take the engine's time."""


_SWITCH = 0.0005
"""Seconds that a thread may keep the interpreter from another one meanwhile (Python's own: 0.005)."""


@dataclass(frozen=True, slots=True)
class Actions:
    """What can be done to the run; None where it cannot. Those that change it return a line
    that says what was done; all raise LiveproError when they fail."""

    reset: Callable[[], str] | None = None
    present: Callable[[], RunResult] | None = None
    """The counts so far, as a report."""
    detach: Callable[[], str] | None = None
    attend: Callable[[], float] | None = None
    """To be called now and then; returns after how many seconds again."""


class LiveRun:
    """Has a collector look at the run, in a thread of its own, while it is used as a context manager.

    `picture` is the latest one (None before the first), and `changed` a file
    descriptor that becomes readable when there is a newer one. `ended` says that the
    engine has finished, `paused` that pictures are to stay as they are, `dismissed` that
    whoever looks should leave: livepro itself was told to end. `failure` is set when looking
    failed: there will be no more pictures.
    """

    def __init__(self, collector: Collector, actions: Actions | None = None) -> None:
        self.actions = actions or Actions()
        self.picture: Picture | None = None
        self.failure: Exception | None = None
        self.ended = False
        self.dismissed = False
        self._paused = False
        self.changed = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._collector = collector
        self._query = Query()
        self._asked = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._work, name="livepro-live", daemon=True)

    @property
    def query(self) -> Query:
        """What the pictures to come tell; set it to have a new one at once."""
        return self._query

    @query.setter
    def query(self, query: Query) -> None:
        if query != self._query:
            self._query = query
            self._asked.set()

    @property
    def paused(self) -> bool:
        """Whether looking is suspended: queries are still answered, from what was seen last."""
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        if paused != self._paused:
            self._paused = paused
            self._asked.set()

    def notify(self) -> None:
        """Make `changed` readable."""
        with suppress(OSError, ValueError):  # nobody looks any more
            os.eventfd_write(self.changed, 1)

    def seen(self) -> None:
        """Make `changed` unreadable again."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.changed)

    def end(self) -> None:
        """Say that the engine has finished: from now on counts are final."""
        self.ended = True
        self._asked.set()
        self.notify()

    def dismiss(self) -> None:
        """Ask whoever looks to leave."""
        self.dismissed = True
        self.notify()

    def _work(self) -> None:
        looked = 0.0
        concluded = False
        try:
            while not self._over:
                self._asked.clear()
                final = self.ended
                if final and not concluded:
                    self._collector.conclude()
                    concluded = True
                began = time.monotonic()
                if (began >= looked or final) and not self._paused:
                    spent = time.thread_time()
                    self._collector.refresh()
                    if not final:  # behind the end there is nobody to make way for
                        looked = began + max(EVERY, LEAN * (time.thread_time() - spent))
                picture = self._collector.picture(self._query)
                self.picture = picture
                self.notify()
                # Behind the end there is only what is yet to be described.
                rest = self._paused or (final and picture.ended and not picture.unnamed)
                self._asked.wait(None if rest else max(0.0, looked - time.monotonic()))
        except Exception as error:  # whatever it is, the run goes on without a view
            self.failure = error
            self.notify()

    def __enter__(self) -> Self:
        # The engine's thread must not wait long for the interpreter whenever a stop wakes it.
        self._switch = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch, _SWITCH))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._asked.set()
        self._thread.join()
        sys.setswitchinterval(self._switch)
        changed, self.changed = self.changed, -1
        os.close(changed)
