"""One measurement from start to finish: the engine runs, its records become a result."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from livepro.engines.base import Engine
from livepro.engines.live import Progress
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.linux.wait import shell_status
from livepro.model import RunResult
from livepro.results import build_processes, build_snapshots, reported
from livepro.tracee.descriptors import own_kept

if TYPE_CHECKING:
    from livepro.live import LiveRun

FAILED = "livepro failed in the middle of the run"
"""How the warning begins that tells of an error of livepro's own, after which the program went on."""

_REPORT_EVERY = 0.25  # seconds
_GRACE = 0.25  # seconds that a Ctrl-C may take from livepro to the program
_LAST_WARNING = 2.0  # seconds from SIGTERM to SIGKILL when livepro itself is told to go

Handler = Callable[[int, FrameType | None], None]


class Session:
    """A launched command under one engine.

    While it runs, Ctrl-C is the program's affair: the terminal sends it to
    livepro and the program alike, and a SIGINT that livepro alone received is
    passed on. SIGTERM and SIGHUP end the program and everything it started;
    the counts so far are the result. All that holds when `run` is called from the
    main thread: only there can Python handle signals.

    The engine has a thread of its own. A tracee answers only to the thread that
    traces it, and the children of the calling one stay its own to wait for.
    """

    def __init__(self, engine: Engine, isa: Isa, *, demangle: bool = True) -> None:
        self.engine = engine
        self.isa = isa
        self._demangle = demangle
        self._pid = os.getpid()
        self._live: LiveRun | None = None
        self.failure: Exception | None = None
        """An error of livepro's own after which the program went on unmeasured."""

    def run(
        self,
        executable: str,
        command: Sequence[str],
        environment: Mapping[bytes, bytes],
        *,
        aslr: bool,
        interval_size: int,
        progress: Callable[[Progress], None] | None = None,
        live: Callable[[LiveRun], None] | None = None,
    ) -> RunResult:
        """Launch `command`, watch it to its end, return what it executed.

        `progress` is called a few times a second meanwhile, from the calling thread.
        `live` is called once, from there too, to look at the run until it returns.
        """
        began = time.monotonic()
        engine = self.engine

        def trace() -> None:
            try:
                engine.launch(executable, command, environment, aslr=aslr)
            except BaseException:
                engine.tracer.abandon()
                raise
            try:
                engine.run()
            except Exception as error:
                self._go_on_unmeasured(error)
            except BaseException:
                engine.tracer.abandon()
                raise

        if live is not None:
            self._live = self._watched(command)
        with self._signals(), own_kept():
            self._in_thread(trace, progress, live)
        return self._result(command, time.monotonic() - began, interval_size)

    def _go_on_unmeasured(self, error: Exception) -> None:
        """After an error of livepro's own: let the program go, and wait for its end. What has been counted
        until then is the result. Raises the error if the program could not go on."""
        engine = self.engine
        engine.rescue()
        try:
            engine.conclude()
        except Exception as another:
            error.add_note(f"then, as counts were gathered: {type(another).__name__}: {another}")
            engine.tracer.wait_for_root()
            raise error from None
        engine.tracer.wait_for_root()
        self.failure = error
        if os.environ.get("LIVEPRO_DEBUG") == "1":
            import traceback

            traceback.print_exception(error)
        what = error.cause if isinstance(error, LiveproError) else f"{type(error).__name__}: {error}"
        engine.warnings.append(
            f"{FAILED} ({what}). The program went on without it: what it "
            "executed after that is not counted, and of each thread the block it was in then is not."
        )

    def _result(self, command: Sequence[str], wall: float, interval_size: int) -> RunResult:
        """What the engine has written down, for a measurement that took `wall` seconds."""
        engine = self.engine
        status = engine.tracer.root_status
        snapshots = engine.control.snapshots
        images = reported(engine.images, snapshots)
        processes = build_processes(images, self.isa, engine.options.kept, demangle=self._demangle)
        region = engine.region
        told = region.tell(sum(process.instructions for process in processes)) if region else ()
        return RunResult(
            engine=engine.name,
            command=tuple(command),
            exit=shell_status(status) if status is not None else None,
            wall_seconds=wall,
            interval_size=interval_size,
            processes=processes,
            stats=dict(engine.stats),
            warnings=(*engine.warnings, *told),
            snapshots=build_snapshots(snapshots, images),
            region=region.result() if region else None,
        )

    def _in_thread(
        self,
        work: Callable[[], None],
        progress: Callable[[Progress], None] | None = None,
        live: Callable[[LiveRun], None] | None = None,
    ) -> None:
        """Do `work` in a new thread, telling `progress` and `live`; what either raises is raised here."""
        failure: list[BaseException] = []

        def body() -> None:
            try:
                work()
            except BaseException as error:
                failure.append(error)
            finally:
                ended.set()
                if self._live is not None:
                    self._live.dismiss() if failure else self._live.end()

        ended = threading.Event()
        thread = threading.Thread(target=body, name="livepro", daemon=True)
        thread.start()
        try:
            if live is not None and self._live is not None:
                self._show(self._live, live)
            while not ended.wait(self._look()):
                if progress is not None and (snapshot := self._snapshot()) is not None:
                    progress(snapshot)
            thread.join()
        except BaseException:  # from `progress`, or a signal handler of the caller's
            while thread.is_alive():
                self._kill()
                thread.join(_GRACE)
            raise
        if failure:
            raise failure[0]

    def _look(self) -> float:
        """What is done now and then meanwhile; returns the seconds until the next time."""
        if self.engine.leaving:
            self.engine.request_detach()  # again: it looks for threads that have been forgotten
        return _REPORT_EVERY

    def _left(self) -> None:
        """Nobody looks at the run any more."""

    def _watched(self, command: Sequence[str], *, detach: Callable[[], str] | None = None) -> LiveRun:
        """The run as a live view takes it; `detach` lets it go."""
        from livepro.live import Actions, Collector, LiveRun
        from livepro.live.present import present

        began = time.monotonic()

        def reset() -> str:
            self.engine.control.perform("reset")
            return "All counts begin anew."

        actions = Actions(
            reset=reset,
            present=lambda: present(
                self.engine, self.isa, command, time.monotonic() - began, demangle=self._demangle
            ),
            detach=detach,
            attend=self._look,
        )
        return LiveRun(Collector(self.engine, self.isa, command, demangle=self._demangle), actions)

    def _show(self, run: LiveRun, live: Callable[[LiveRun], None]) -> None:
        """Let `live` look at the run. If it cannot, the run goes on all the same."""
        try:
            with run:
                live(run)
            self._left()
        except Exception as error:
            self.engine.warnings.append(
                f"The live view failed ({type(error).__name__}: {error}); the run went on without it."
            )

    def _snapshot(self) -> Progress | None:
        try:
            return self.engine.progress()
        except (RuntimeError, KeyError):  # the engine's thread was changing a table
            return None

    # -- signals that livepro receives

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle livepro's own signals for as long as the target runs."""
        try:
            former = {
                number: signal.signal(number, handler)
                for number, handler in self._handlers().items()
                if signal.getsignal(number) is not signal.SIG_IGN
            }
        except ValueError:  # not the main thread: its signals are somebody else's
            yield
            return
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in former.items():
                signal.signal(number, handler)

    def _handlers(self) -> dict[signal.Signals, Handler]:
        """What each of livepro's own signals does."""
        return {
            signal.SIGINT: self._interrupt,
            signal.SIGQUIT: self._interrupt,
            signal.SIGTERM: self._terminate,
            signal.SIGHUP: self._terminate,
            signal.SIGALRM: self._alarm,
        }

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            return  # the child on its way to exec, which would inherit the timer
        self._pending: tuple[int, float] = (number, time.monotonic())
        signal.setitimer(signal.ITIMER_REAL, _GRACE)
        self._on_alarm: Callable[[], None] = self._pass_on

    def _pass_on(self) -> None:
        """Send the program the Ctrl-C that reached livepro alone."""
        number, received = self._pending
        # The engine's thread may have seen the program's before this one was told of its own.
        if self.engine.tracer.signals_seen.get(number, 0.0) >= received - _GRACE:
            return
        live = self.engine.tracer.live
        if live:
            _send(live[0].pid, number)
        else:
            signal.setitimer(signal.ITIMER_REAL, _GRACE)  # on its way: told once it is there

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            return
        self.engine.warnings.append(
            f"livepro was sent {signal.Signals(number).name}: it ended the program early."
        )
        if self._live is not None:
            self._live.dismiss()
        for process in self.engine.tracer.live:
            _send(process.pid, signal.SIGTERM)
            _send(process.pid, signal.SIGCONT)
        signal.setitimer(signal.ITIMER_REAL, _LAST_WARNING, _GRACE)
        self._on_alarm = self._kill

    def _kill(self) -> None:
        for process in self.engine.tracer.live:
            _send(process.pid, signal.SIGKILL)

    def _alarm(self, number: int, frame: FrameType | None) -> None:
        self._on_alarm()


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
