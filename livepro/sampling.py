"""A process measured in bursts: attached to for a moment, let go, and again after a while.

Between two windows nobody traces it: it runs as if livepro were not there.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from livepro.analyses.merging import merge
from livepro.attachment import Attachment
from livepro.errors import LiveproError
from livepro.model import RunResult, SamplingResult, Window

_LOOK_EVERY = 0.1  # seconds between two looks at whether it is over, while nobody is attached
_LEAVE = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)

Measure = Callable[[Callable[[Attachment], None]], RunResult]
"""Attaches once; is given what to tell of the attachment before it begins."""


class Sampler:
    """Takes a window of process `pid` every `every` seconds until `seconds` have passed (None: without
    end), the process has ended, or livepro is told to leave it, by SIGINT, SIGTERM or SIGHUP."""

    def __init__(self, pid: int, every: float, seconds: float | None) -> None:
        self._pid = pid
        self._every = every
        self._seconds = seconds
        self._told = False
        self._attachment: Attachment | None = None

    def stop(self) -> None:
        """Take no more windows, and end the present one. Safe in any thread."""
        self._told = True
        if self._attachment is not None:
            self._attachment.detach()

    def run(self, measure: Measure) -> RunResult:
        """Take the windows and return them as one result. Raises LiveproError when the first fails."""
        results: list[RunResult] = []
        windows: list[Window] = []
        try:
            process = os.pidfd_open(self._pid)
        except OSError as error:
            raise LiveproError(f"There is no process {self._pid}: {error.strerror}.") from None
        began = time.monotonic()
        try:
            with self._signals():
                while not self._told:
                    start = time.monotonic()
                    try:
                        found = measure(self._begun)
                    except LiveproError:
                        if not results or not self._wait(process, start):
                            raise  # and not because it has ended
                        break
                    attachment = self._attachment
                    assert attachment is not None
                    self._told |= attachment.told
                    results.append(found)
                    windows.append(Window(start - began, attachment.watched, found.instructions))
                    if found.exit is not None or self._wait(process, start + self._every):
                        break
                    if self._seconds is not None and time.monotonic() - began >= self._seconds:
                        break
        finally:
            os.close(process)
        return _joined(results, SamplingResult(tuple(windows), time.monotonic() - began))

    def _begun(self, attachment: Attachment) -> None:
        self._attachment = attachment

    def _wait(self, process: int, until: float) -> bool:
        """Wait for the next window; whether there will be none, since the process has ended."""
        poll = select.poll()
        poll.register(process, select.POLLIN)
        while True:
            left = until - time.monotonic()
            if poll.poll(1000 * max(min(left, _LOOK_EVERY), 0)):
                return True
            if left <= 0 or self._told:
                return False

    @contextmanager
    def _signals(self) -> Iterator[None]:
        former = {}
        with suppress(ValueError):  # not the main thread: its signals are somebody else's
            former = {n: signal.signal(n, self._leave) for n in _LEAVE}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        self._told = True


def _joined(results: list[RunResult], sampling: SamplingResult) -> RunResult:
    """All windows as one result."""
    last = results[-1]
    warnings = dict.fromkeys(warning for result in results for warning in result.warnings)
    return RunResult(
        engine=last.engine,
        command=results[0].command,
        exit=last.exit,
        wall_seconds=sampling.seconds,
        interval_size=0,
        processes=merge([result.processes for result in results]),
        stats=dict(last.stats),
        warnings=tuple(warnings),
        sampling=sampling,
    )
