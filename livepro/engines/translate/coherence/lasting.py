"""Whether it pays to protect a page of generated code: how long it will stay as it is, and what that saves.

Virtual machines write to the pages of their hottest code again and again, a compiled method's own state
being beside it: at every safepoint perhaps. Then it pays to protect them each time anew; it does not where
little is executed, or where the next write follows at once.
"""

from __future__ import annotations

_WORTH = 100_000
"""Executions whose comparisons (some 10 ns each) cost as much as a write that has to wait (half a millisecond
to one), and what has to be done then."""
_HOPE = 0.2
"""Seconds for which a page is taken to have stayed as it was before it was protected first."""
_FORGOTTEN = 8
"""A page that has been left alone for so many times a time may well stay as it is for that."""
_REFUSED = 30.0  # seconds until what could not be protected is tried again


class Lasting:
    """What is known of pages that have been protected. Times are in seconds, of one clock."""

    def __init__(self) -> None:
        self._lasts: dict[int, float] = {}
        self._written: dict[int, float] = {}
        self._refused: dict[int, float] = {}

    def written(self, page: int, now: float, since: float) -> None:
        """Somebody writes to a page, which has been protected `since` then."""
        self._lasts[page] = (self._lasts.get(page, _HOPE) + now - since) / 2
        self._written[page] = now

    def refused(self, page: int, now: float) -> None:
        """It could not be protected."""
        self._refused[page] = now + _REFUSED

    def pays(self, page: int, now: float, rate: float) -> bool:
        """Whether to protect a page whose copies are executed `rate` times a second."""
        if now < self._refused.get(page, now):
            return False
        written = self._written.get(page)
        if written is None:
            return True
        return rate * max(self._lasts[page], (now - written) / _FORGOTTEN) >= _WORTH
