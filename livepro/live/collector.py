"""From an engine's live counts to pictures: takes what changed, adds it up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import Any, Protocol

import numpy as np

from livepro.engines.live import LiveCounts
from livepro.engines.recording import ImageRecord
from livepro.isa.base import Isa
from livepro.linux import proc
from livepro.linux.wait import shell_status
from livepro.live import rows
from livepro.live.catalogue import Catalogue, Ints
from livepro.live.history import History
from livepro.live.sums import Recent, Sum, join
from livepro.live.tracked import UNKNOWN, Image, Tracked
from livepro.model.live import Late, Measure, Picture, Query
from livepro.tracee import TracedThread

BUDGET = 0.015
"""Seconds of CPU time that one look may spend on describing blocks that are new; the rest waits
for the next one, the hottest first."""

CATCHING_UP = 4
"""So many times more while a tenth or more of the instructions are of blocks that wait."""

AT_THE_END = 0.25
"""Seconds of CPU time for that once the engine has finished: a look then takes no time of its."""

NAMES_EVERY = 2.0
"""Seconds after which threads are asked for their names again: programs name theirs late."""

KEPT = 200
"""Process images that have ended whose threads can still be looked into."""

LATE = 4096
"""Corrections of earlier pictures that a picture carries: those of some seconds."""


class LiveTracer(Protocol):
    """What is asked of an engine's tracer."""

    threads: dict[int, TracedThread]
    root_status: int | None

    @property
    def live(self) -> Sequence[Any]:
        """The processes that have not ended."""


class LiveControl(Protocol):
    """What is asked of an engine's control."""

    resets: int
    paused: bool


class LiveEngine(Protocol):
    """What is asked of an engine (`livepro.engines.base.Engine`)."""

    name: str
    images: list[ImageRecord]
    warnings: list[str]

    @property
    def tracer(self) -> LiveTracer:
        """Who knows threads and processes."""

    @property
    def control(self) -> LiveControl:
        """What resets and pauses."""

    def live(self, record: ImageRecord, known: Container[TracedThread] = ()) -> LiveCounts | None:
        """The counts of an image so far."""


class Collector:
    """Looks at a run now and then (`refresh`) and tells what it has seen (`picture`).

    For one thread, which need not be the engine's.
    """

    def __init__(
        self,
        engine: LiveEngine,
        isa: Isa,
        command: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        budget: float = BUDGET,
        demangle: bool = True,
    ) -> None:
        self._engine = engine
        self._command = tuple(command)
        self._clock = clock
        self._budget = budget
        self._catalogue = Catalogue(isa, demangle=demangle)
        self._numbers: dict[TracedThread, int] = {}
        self._started = self._then = self._named = clock()
        self._ended_at: float | None = None
        self._concluded = False
        self._late: deque[Late] = deque(maxlen=LATE)
        self._corrections = 0
        self._begin()

    def _begin(self) -> None:
        """Nothing has been seen yet, or since the last reset."""
        self._resets = self._engine.control.resets
        self._images: list[Image] = []
        self._active: list[Image] = []
        self._seen = 0
        self._threads: dict[int, tuple[Image, Tracked]] = {}
        self._instructions = 0
        self._whole = Sum(self._catalogue)
        self._recent = Recent()
        self._history = History()
        self._told = 0, 0  # of what is looked at anew, the instructions and SIMD that the history has
        self._selected: tuple[Tracked, Sum] | None = None
        # Of images that are no longer kept: threads, their instructions, SIMD; distinct blocks.
        self._gone = (0, 0, 0)
        self._distinct = 0
        self._limited = False

    # -- looking

    def refresh(self) -> None:
        """Take what has been executed since the last time."""
        now = self._clock()
        seconds, self._then = now - self._then, now
        behind = self._instructions - int(self._whole.features[0])
        factor = CATCHING_UP if behind * 10 > self._instructions else 1
        until = time.thread_time() + (AT_THE_END if self._concluded else self._budget * factor)
        images = self._engine.images
        if self._engine.control.resets != self._resets:
            self._begin()
        while self._seen < len(images):
            image = Image(images[self._seen])
            self._images.append(image)
            self._active.append(image)
            self._seen += 1
        numbers: list[Ints] = []
        times: list[Ints] = []
        instructions = simd = 0
        for image in list(self._active):
            counted = self._look(image, seconds, until)
            if counted is not None:
                instructions += counted[0]
                simd += counted[1]
                numbers.append(counted[2])
                times.append(counted[3])
        self._catalogue.name()
        self._instructions += instructions
        found, executed = join(numbers), join(times)
        self._recent.add(seconds, instructions, simd, found, executed)
        if self._ended_at is None:
            catalogue = self._catalogue
            told, told_simd = self._told
            self._history.add(
                seconds,
                max(0, instructions - told),
                max(0, simd - told_simd),
                catalogue.parent[found],
                catalogue.length[found] * executed,
            )
        if now - self._named >= NAMES_EVERY:
            self._name_threads()
            self._named = now
        self._drop()

    def _look(self, image: Image, seconds: float, until: float) -> tuple[int, int, Ints, Ints] | None:
        """Instructions, SIMD instructions and blocks (catalogue number, executions) since the last look."""
        catalogue = self._catalogue
        known = {thread for thread, tracked in image.threads.items() if tracked.closed}
        counts = self._engine.live(image.record, known)
        if counts is None:
            return None
        image.prepare(counts)
        self._limited |= any(live.limited for live in counts.threads)
        moves = []
        for live in counts.threads:
            tracked = image.threads.get(live.thread) or self._track(image, live.thread)
            move = image.advance(tracked, live, catalogue)
            if move is not None:
                moves.append(move)
        new = image.learn(moves, catalogue, until)
        self._correct(image)
        for move in moves:
            image.owe(move, self._history.samples, self._then - self._started)
        instructions = simd = 0
        all_numbers: list[Ints] = []
        all_times: list[Ints] = []
        for tracked, own_rows, times, parts, part_times, fresh, own in moves:
            numbers = image.number[own_rows]
            now = numbers != UNKNOWN
            moved = join([numbers[now], parts])
            moved_times = join([times[now], part_times])
            part_simd = int(part_times @ catalogue.simd[parts])
            own_simd = int(times @ image.simd[own_rows]) + part_simd
            tracked.recent.add(seconds, own, own_simd, moved, moved_times)
            instructions += own
            simd += own_simd
            all_numbers.append(moved)
            all_times.append(moved_times)
            # To the sums, blocks that have just been learnt add all that was counted of them before.
            old = ~fresh
            added, added_times = join([numbers[old], parts]), join([times[old], part_times])
            self._whole.add(added, added_times)
            self._select_add(tracked, added, added_times)
        if len(new):
            learnt = image.number[new]
            self._whole.add(learnt, image.entries(new))
            if self._selected is not None and self._selected[0] in image.threads.values():
                self._selected[1].add(learnt, self._selected[0].entries[new])
        if counts.settled and not image.waiting:
            image.settled = True
            self._active.remove(image)
        return instructions, simd, join(all_numbers), join(all_times)

    def _correct(self, image: Image) -> None:
        """Add to earlier moments what is known of them only now."""
        for owed, simd in image.paid():
            self._history.correct(owed.sample, simd)
            self._corrections += 1
            self._late.append(Late(self._corrections, owed.seconds, owed.tracked.number, simd))

    def _track(self, image: Image, thread: TracedThread) -> Tracked:
        number = self._numbers.setdefault(thread, len(self._numbers))
        tracked = Tracked(thread, number, name=thread.name)
        tracked.entries = np.zeros(len(image.number), np.int64)
        image.threads[thread] = tracked
        self._threads[number] = image, tracked
        return tracked

    def _select_add(self, tracked: Tracked, numbers: Ints, times: Ints) -> None:
        if self._selected is not None and self._selected[0] is tracked:
            self._selected[1].add(numbers, times)

    def _alive(self, thread: TracedThread) -> bool:
        return self._engine.tracer.threads.get(thread.tid) is thread

    def _name_threads(self) -> None:
        for image in self._active:
            for thread, tracked in image.threads.items():
                if self._alive(thread):
                    tracked.name = proc.thread_name(thread.tid) or tracked.name

    def _drop(self) -> None:
        """Forget the particulars of images that ended long ago, where there are many."""
        settled = [image for image in self._images if image.settled]
        for image in settled[: max(0, len(settled) - KEPT)]:
            if self._selected is not None and self._selected[0] in image.threads.values():
                continue
            for tracked in image.threads.values():
                threads, instructions, simd = self._gone
                self._gone = threads + 1, instructions + tracked.instructions, simd + tracked.simd
                del self._threads[tracked.number]
            self._distinct += image.blocks
            self._images.remove(image)

    def conclude(self) -> None:
        """The engine has finished: look once more. Where counts were limited, at all anew: they
        were being made final when they were last looked at."""
        if self._limited:
            history = self._history
            self._begin()
            self._history = history
            seen = history.moments()
            self._told = sum(m.instructions for m in seen), sum(m.simd for m in seen)
        self._concluded = True
        self.refresh()
        self._ended_at = self._then  # what is described later takes none of the run's time

    # -- telling

    def picture(self, query: Query) -> Picture:
        """What a view with `query` shows, as of the last refresh."""
        catalogue = self._catalogue
        total, recent, own = self._whole, self._recent, None
        if query.thread in self._threads:
            image, own = self._threads[query.thread]
            total, recent = self._selection(image, own), own.recent
        total.add(_NONE, _NONE)
        shown = rows.Shown(catalogue, total, recent)
        tracer = self._engine.tracer
        kept = [tracked for image in self._images for tracked in image.threads.values()]
        instructions = self._instructions
        simd = sum(t.simd for t in kept) + self._gone[2]
        rates = self._recent.rates()
        threads = rows.threads(
            [
                (image.record, t, self._alive(t.thread))
                for image in self._images
                for t in image.threads.values()
            ],
            query,
        )
        selected = instructions if own is None else own.instructions
        selected_simd = simd if own is None else own.simd
        selected_rates = recent.rates()
        ended = self._engine_ended()
        if ended and self._ended_at is None:
            self._ended_at = self._then
        functions, functions_total = shown.functions(query)
        blocks, blocks_total = shown.blocks(query)
        return Picture(
            seconds=(self._ended_at or self._then) - self._started,
            command=self._command,
            engine=self._engine.name,
            ended=ended,
            counting=not self._engine.control.paused,
            exit=shell_status(tracer.root_status) if ended and tracer.root_status is not None else None,
            query=query,
            processes=len(tracer.live),
            threads_alive=len(tracer.threads),
            distinct_blocks=sum(image.blocks for image in self._images) + self._distinct,
            whole=Measure(instructions, rates[0]),
            whole_simd=Measure(simd, rates[1]),
            selected=Measure(selected, selected_rates[0]),
            selected_simd=Measure(selected_simd, selected_rates[1]),
            unnamed=max(0, selected - shown.described),
            itypes=shown.itypes(),
            simd=shown.simd(),
            simd_types=shown.simd_types(),
            threads=threads[: query.rows],
            threads_total=len(threads) + self._gone[0],
            functions=functions,
            functions_total=functions_total,
            blocks=blocks,
            blocks_total=blocks_total,
            listing=shown.listing(query),
            moments=self._history.moments(),
            warnings=tuple(self._engine.warnings),
            late=tuple(self._late),
        )

    def _engine_ended(self) -> bool:
        tracer = self._engine.tracer
        return bool(self._images) and not self._active and not tracer.live and not tracer.threads

    def _selection(self, image: Image, tracked: Tracked) -> Sum:
        if self._selected is None or self._selected[0] is not tracked:
            total = Sum(self._catalogue)
            total.add(*image.of_thread(tracked, self._catalogue))
            self._selected = tracked, total
        return self._selected[1]


_NONE: Ints = np.zeros(0, np.int64)
