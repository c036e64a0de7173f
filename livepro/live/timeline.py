"""Keeps what a run had executed at one moment after the other, for a report."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from livepro.engines.live import Progress
from livepro.live.run import EVERY, LiveRun
from livepro.model.live import Picture, Query, ThreadRow
from livepro.model.timeline import Timeline, TimelinePhase, TimelineThread

KEPT = 600
"""Moments kept; when there are more, every other one is forgotten. A chart has about as many columns."""

MOST_THREADS = 100
"""Threads that are kept apart, those that began first."""

_LOOK = 0.05  # seconds between two looks for a new picture


@dataclass
class _Moment:
    seconds: float
    instructions: int
    simd: int
    threads: dict[int, tuple[int, int]]


@dataclass
class Recorder:
    """Looks at a run's pictures as they come. `beside` gives what `livepro.run` takes for `live`."""

    _moments: list[_Moment] = field(default_factory=list)
    _threads: dict[int, ThreadRow] = field(default_factory=dict)
    _left_out: int = 0
    _phases: tuple[TimelinePhase, ...] = ()
    _corrected: int = 0

    def beside(
        self,
        view: Callable[[LiveRun], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Callable[[LiveRun], None]:
        """Looks at a run while `view` does or, without one, from its start to its end, telling `progress`."""

        def alone(run: LiveRun) -> None:
            run.query = Query(rows=MOST_THREADS, thread_order="start")
            told = 0.0
            while not self._over(run):
                attend = run.actions.attend
                pause = min(EVERY, attend() if attend is not None else EVERY)
                picture = run.picture
                if progress is not None and picture is not None and picture.seconds > told:
                    told = picture.seconds
                    progress(_progress(picture))
                self._add(picture)
                time.sleep(min(pause, _LOOK))

        def with_view(run: LiveRun) -> None:
            assert view is not None
            done = threading.Event()

            def look() -> None:
                while not done.wait(_LOOK):
                    self._add(run.picture)

            looking = threading.Thread(target=look, name="livepro-timeline", daemon=True)
            looking.start()
            try:
                view(run)
            finally:
                done.set()
                looking.join()
                self._add(run.picture)

        return alone if view is None else with_view

    def timeline(self) -> Timeline | None:
        """What was seen; None where that is nothing."""
        if not self._moments:
            return None
        return Timeline(
            seconds=tuple(m.seconds for m in self._moments),
            instructions=_never_more(m.instructions for m in self._moments),
            simd=_never_more(m.simd for m in self._moments),
            threads=tuple(self._thread(number, row) for number, row in sorted(self._threads.items())),
            phases=self._phases,
            left_out=self._left_out,
        )

    def _over(self, run: LiveRun) -> bool:
        """Whether there is nothing more to come, after the last picture has been taken."""
        if run.failure is not None or run.dismissed:
            return True
        picture = run.picture
        if run.ended and picture is not None and picture.ended:
            self._add(picture)
            return True
        return False

    def _add(self, picture: Picture | None) -> None:
        if picture is None or not picture.threads:
            return
        if self._moments and picture.seconds < self._moments[-1].seconds:
            return
        self._correct(picture)
        if self._moments and picture.seconds == self._moments[-1].seconds:
            self._moments.pop()  # the same moment, of which more is known: SIMD of blocks described since
        for row in picture.threads:
            if row.number in self._threads or len(self._threads) < MOST_THREADS:
                self._threads[row.number] = row
        shown = {
            row.number: (row.instructions.total, row.simd.total)
            for row in picture.threads
            if row.number in self._threads
        }
        self._moments.append(_Moment(picture.seconds, picture.whole.total, picture.whole_simd.total, shown))
        self._left_out = max(self._left_out, picture.threads_total - len(self._threads))
        self._phases = tuple(
            TimelinePhase(m.seconds, -1 if m.phase is None else m.phase) for m in picture.moments
        )
        if len(self._moments) > KEPT:
            del self._moments[-2::-2]

    def _correct(self, picture: Picture) -> None:
        """Add to earlier moments the SIMD instructions of blocks that have been described since."""
        for late in picture.late:
            if late.serial <= self._corrected:
                continue
            self._corrected = late.serial
            for moment in reversed(self._moments):
                if moment.seconds < late.seconds:
                    break
                moment.simd += late.simd
                if late.thread in moment.threads:
                    instructions, simd = moment.threads[late.thread]
                    moment.threads[late.thread] = instructions, simd + late.simd

    def _thread(self, number: int, row: ThreadRow) -> TimelineThread:
        first = next(
            n for n, m in enumerate(self._moments) if number in m.threads or n == len(self._moments) - 1
        )
        last = (0, 0)
        counts = []
        for moment in self._moments[first:]:
            last = moment.threads.get(number, last)  # no longer listed: it has ended
            counts.append(last)
        return TimelineThread(
            row.pid,
            row.tid,
            row.name,
            row.program,
            first,
            _never_more(instructions for instructions, _ in counts),
            _never_more(simd for _, simd in counts),
        )


def _never_more(counts: Iterable[int]) -> tuple[int, ...]:
    """Counts as seen, none above a later one: one that is looked at amid a block can be some instructions
    ahead, and is exact only later."""
    return tuple(accumulate(reversed(list(counts)), min))[::-1]


def _progress(picture: Picture) -> Progress:
    return Progress(picture.whole.total, picture.threads_alive, picture.processes, picture.seconds)
