"""Control of a run in progress: reset, snapshot, pause, resume, status.

A command is carried out by the thread that runs the engine; others hand it
over and wait (`perform`). It concerns the whole run: every thread of every
process. The counts of a command's moment are exact for a program's thread that
gives the command itself (`livepro.inprocess`), and for all others: those are brought
to a stop first where their counts could change meanwhile (`Engine.halted`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.window import BETWEEN, Counts, Position, Vectors
from livepro.errors import LiveproError
from livepro.tracee.waker import Waker

if TYPE_CHECKING:
    from concurrent.futures import Future

Answer = TypeVar("Answer")

COMMANDS = ("status", "reset", "snapshot", "pause", "resume", "detach")

_PATIENCE = 30.0  # seconds that a command may wait for the engine


class SnapshotRecord(NamedTuple):
    """What each thread had executed when a snapshot was taken, resets and pauses left
    out. `seconds` are since the start of the run, `resets` the resets before it."""

    label: str
    seconds: float
    resets: int
    counts: dict[ThreadTally, Counts]


class Controlled(Protocol):
    """What control needs of an engine."""

    images: list[ImageRecord]

    def raw_counts(self, tally: ThreadTally) -> Counts:
        """All that is in a thread's counts now."""

    def position(self, tally: ThreadTally) -> Position:
        """Where a thread is in the block that it executes, as far as that is known."""

    def vectors(self, tally: ThreadTally) -> Vectors | None:
        """What cuts a thread's basic block vectors, None if there are none to cut."""

    def alive(self, tally: ThreadTally) -> bool:
        """Whether a thread may yet execute anything."""

    def halted(self) -> AbstractContextManager[None]:
        """Meanwhile no thread's counts change."""

    def request_detach(self) -> None:
        """Let every process go."""

    def status(self) -> dict[str, Any]:
        """How far the run is, in values that JSON knows."""


class Control:
    """Carries out commands on one engine's run. `paused`, `snapshots` and how many `resets` there
    have been are its state."""

    def __init__(self, engine: Controlled, waker: Waker) -> None:
        self._engine = engine
        self._waker = waker
        self._lock = Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._open = True
        self.paused = False
        self.resets = 0
        self.snapshots: list[SnapshotRecord] = []
        self.commanded: Callable[[str], None] | None = None
        """Told of each reset, and of each pause and its end, while the engine is halted."""
        self.started = time.monotonic()

    # -- from any thread

    def submit(self, work: Callable[[], Answer]) -> Future[Answer]:
        """Have the thread that runs the engine do `work`, as soon as it is told. A run that is
        over does no more: the future then fails with LiveproError."""
        from concurrent.futures import Future  # late: most runs are given no command

        future: Future[Answer] = Future()
        with self._lock:
            if self._open:
                self._waiting.append((future, work))
                self._waker.wake()
            else:
                future.set_exception(_over())
        return future

    def perform(self, command: str, label: str = "") -> dict[str, Any]:
        """Carry out a command and return its answer: what `status` says, behind it.
        Raises LiveproError when the run is over, or does not answer."""
        future = self.submit(lambda: self.execute(command, label))
        try:
            return future.result(_PATIENCE)
        except TimeoutError:
            future.cancel()
            raise LiveproError(
                f"The run has not answered within {_PATIENCE:.0f} s.",
                "It is stopped or overloaded: try again.",
            ) from None

    # -- from the thread that runs the engine

    @property
    def asked(self) -> bool:
        """Whether something waits to be done."""
        return bool(self._waiting)

    def serve(self) -> None:
        """Do what has been handed over."""
        if not self._waiting:
            return
        from concurrent.futures import InvalidStateError

        while self._waiting:
            future, work = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = work()
            except Exception as error:
                future.set_exception(error)
            else:
                with suppress(InvalidStateError):
                    future.set_result(answer)

    def close(self) -> None:
        """The run is over: whoever still waits is told so."""
        with self._lock:
            self._open = False
            waiting, self._waiting = self._waiting, deque()
        for future, _ in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(_over())

    def execute(self, command: str, label: str = "") -> dict[str, Any]:
        """Carry out a command here and now; see `perform`."""
        if command not in COMMANDS:
            raise LiveproError(
                f"There is no command '{command}'.", f"The commands are {', '.join(COMMANDS)}."
            )
        if command == "detach":
            self._engine.request_detach()
        elif command != "status":
            with self._engine.halted():
                before = self.paused
                getattr(self, f"_{command}")(label)
                if self.commanded is not None and (command == "reset" or self.paused != before):
                    self.commanded(command)
        return self._engine.status()

    def change(self, command: str) -> None:
        """Reset, pause or resume while the engine is halted."""
        getattr(self, f"_{command}")("")

    def enrol(self, record: ImageRecord, tally: ThreadTally) -> None:
        """A thread is about to execute its first instruction."""
        record.tallies.append(tally)
        if self.paused:
            tally.window.pause(Counts())
            if (vectors := self._engine.vectors(tally)) is not None:
                vectors.freeze(BETWEEN)

    def _now(self, tally: ThreadTally, position: Position) -> Counts:
        return self._engine.raw_counts(tally).at(position)

    def _tallies(self) -> list[ThreadTally]:
        return [tally for image in self._engine.images for tally in image.tallies]

    def _reset(self, _label: str) -> None:
        engine = self._engine
        for tally in self._tallies():
            position = engine.position(tally)
            tally.window.reset(self._now(tally, position))
            tally.window.over = not engine.alive(tally)
            vectors = engine.vectors(tally)
            if vectors is None:
                tally.intervals.clear()
            else:
                vectors.restart(position)
        self.resets += 1

    def _pause(self, _label: str) -> None:
        if self.paused:
            return
        self.paused = True
        for tally in self._tallies():
            position = self._engine.position(tally)
            tally.window.pause(self._now(tally, position))
            if (vectors := self._engine.vectors(tally)) is not None:
                vectors.freeze(position)

    def _resume(self, _label: str) -> None:
        if not self.paused:
            return
        self.paused = False
        for tally in self._tallies():
            position = self._engine.position(tally)
            tally.window.resume(self._now(tally, position))
            if (vectors := self._engine.vectors(tally)) is not None:
                vectors.thaw(position)

    def _snapshot(self, label: str) -> None:
        counts = {}
        for tally in self._tallies():
            counted = tally.window.counted(self._now(tally, self._engine.position(tally)))
            if not tally.window.over:
                counts[tally] = counted
        self.snapshots.append(SnapshotRecord(label, time.monotonic() - self.started, self.resets, counts))


def _over() -> LiveproError:
    return LiveproError("The run is over.")
