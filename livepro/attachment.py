"""One measurement of processes that run already: taken over, watched for a while, let go."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from livepro.engines.base import Engine
from livepro.engines.live import Progress
from livepro.isa.base import Isa
from livepro.linux import proc, target
from livepro.linux.vm import shares_memory
from livepro.model import RunResult
from livepro.session import Handler, Session
from livepro.tracee.descriptors import own_kept
from livepro.tracee.seize import Refused

if TYPE_CHECKING:
    from livepro.live import LiveRun

_LOOK_EVERY = 0.01  # seconds between two looks at the instruction count, where it ends the measurement
_OWN_MEMORY_LOOKS, _OWN_MEMORY_LOOK = 200, 0.001  # how often to look whether a child has begun its program


@dataclass(frozen=True, slots=True)
class Limits:
    """When to let go: after so many seconds, or once so many instructions have been counted
    (which is looked at a hundred times a second). None: when told to, or when the processes end."""

    seconds: float | None = None
    instructions: int | None = None


class Attachment(Session):
    """Processes attached to under one engine.

    SIGINT, SIGQUIT, SIGTERM and SIGHUP to livepro let the processes go, and so does every
    error; what has been counted until then is the result of the former. SIGTSTP is
    ignored meanwhile: processes that wait for livepro must not wait for its being continued.
    As for a run, this holds where `watch` is called from the main thread.
    """

    def __init__(self, engine: Engine, isa: Isa, limits: Limits, *, demangle: bool = True) -> None:
        super().__init__(engine, isa, demangle=demangle)
        self._limits = limits
        self._began: float | None = None
        self._ended: float | None = None
        self.told = False
        """Whether a signal to livepro ended it."""

    def watch(
        self,
        pid: int,
        *,
        children: bool = False,
        interval_size: int,
        progress: Callable[[Progress], None] | None = None,
        live: Callable[[LiveRun], None] | None = None,
    ) -> RunResult:
        """Attach to a process, and with `children` to its descendants; watch until a limit is
        reached, they have ended, or `detach` is called; let them go, and return what they
        executed meanwhile. `live` is called once, to look at that; when it returns, they
        are let go, too.

        Raises LiveproError when one of them cannot be attached to; all are let go then.
        """
        command = proc.command_line(pid)
        engine = self.engine

        def trace() -> None:
            try:
                self._attach(pid)
                if children:
                    self._attach_descendants(pid)
                engine.run()
            except BaseException:
                engine.rescue()
                raise

        if live is not None:
            self._live = self._watched(command, detach=self._let_go)
        with self._signals(), own_kept():
            self._in_thread(trace, progress, live)
        began = self._began or time.monotonic()
        return self._result(command, time.monotonic() - began, interval_size)

    def _attach(self, pid: int) -> None:
        try:
            self.engine.attach(pid, proc.parent(pid))
        except Refused as error:
            raise target.refusal(pid, error) from None

    def _attach_descendants(self, pid: int) -> None:
        """Those that there are; those to come are told of by the kernel, once their parents are seized."""
        seen = {*target.lineage(os.getpid())}
        while new := [child for child in target.descendants(pid) if child not in seen]:
            for child in new:
                seen.add(child)
                if not self._has_own_memory(child):
                    self.engine.warnings.append(
                        f"Process {child} runs in the memory of its parent, which waits for it (vfork). "
                        "It is not counted."
                    )
                    continue
                try:
                    self.engine.attach(child, proc.parent(child))
                except Refused as error:
                    if error.errno == errno.ESRCH:
                        continue
                    if proc.tracer(child) != threading.get_native_id():
                        self.engine.warnings.append(
                            f"{target.refusal(child, error).cause} It is not counted."
                        )

    def _has_own_memory(self, child: int) -> bool:
        """Whether a process has memory of its own, or comes to have within a moment. Two that share theirs
        can only be taken over together, and one that was born of a vfork is about to exec."""
        kcmp = self.engine.isa.syscalls.numbers["kcmp"]
        for _ in range(_OWN_MEMORY_LOOKS):
            if not shares_memory(kcmp, child, proc.parent(child)):
                return True
            time.sleep(_OWN_MEMORY_LOOK)
        return False

    @property
    def watched(self) -> float:
        """Seconds from when every thread ran again to when they were to be let go."""
        now = time.monotonic()
        return max((self._ended or now) - (self._began or now), 0.0)

    def detach(self) -> None:
        """Let the processes go. Safe in any thread and in signal handlers."""
        self._ended = self._ended or time.monotonic()
        self.engine.request_detach()
        if self._live is not None:
            self._live.dismiss()

    def _let_go(self) -> str:
        self.detach()
        return "The processes are let go."

    def _left(self) -> None:
        self.detach()

    def _look(self) -> float:
        """See whether a limit has been reached; returns the seconds until the next look."""
        limits = self._limits
        pause = super()._look()
        if self._began is None:
            if not self.engine.tracer.taken:
                return _LOOK_EVERY
            self._began = time.monotonic()  # every thread runs again, watched
        if limits.seconds is not None:
            left = self._began + limits.seconds - time.monotonic()
            if left <= 0:
                self.detach()
            else:
                pause = min(pause, left)
        if limits.instructions is not None:
            snapshot = self._snapshot()
            if snapshot is not None and snapshot.instructions >= limits.instructions:
                self.detach()
            pause = min(pause, _LOOK_EVERY)
        return pause

    def _handlers(self) -> dict[signal.Signals, Handler]:
        leave = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
        return {**dict.fromkeys(leave, self._leave), signal.SIGTSTP: self._ignore}

    def _leave(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() == self._pid:
            self.told = True
            self.detach()

    def _ignore(self, number: int, frame: FrameType | None) -> None:
        pass

    def _kill(self) -> None:
        self.detach()
