"""The contract of the engines: what each is given and what it delivers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.alike import Alike
from livepro.engines.control import Control
from livepro.engines.debuggers import Debuggers
from livepro.engines.inprocess import InProcess
from livepro.engines.live import LiveCounts, Progress, stored
from livepro.engines.recording import CutRule, ImageRecord, ThreadTally
from livepro.engines.region import Arrival, Region, RegionWatch
from livepro.engines.traps import IgnoredTraps
from livepro.engines.window import Counts, Position, Vectors
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.tracee import TracedProcess, TracedThread, Tracer
from livepro.tracee.launch import refused
from livepro.tracee.seize import interrupt
from livepro.tracee.stops import in_hand

if TYPE_CHECKING:
    from livepro.engines.rescue import Homing
    from livepro.engines.stream.recorder import Recorder

_LOOKS = 20  # wakings in a row that find the same threads waiting for an answer


class EngineOptions(NamedTuple):
    """What every engine is given.

    `cut` says where basic block vector intervals end (None: no intervals);
    `measurable` tells whether a process image is one that the ISA can decode;
    `kept` is the directory in which translated code is kept from run to run
    (None: nowhere). `region` is the part of the run that counts (None: all). `cache_size` is about how
    many bytes translated code may take in each process (None: as many as the engine likes); where it
    would be more, all is dropped and translated anew. `stream` records the event stream (None: it is
    not recorded).
    """

    follow_children: bool = True
    cut: CutRule | None = None
    measurable: Callable[[int], bool] | None = None
    kept: Path | None = None
    region: Region | None = None
    cache_size: int | None = None
    stream: Recorder | None = None


class Engine(ABC):
    """Watches every instruction of the processes that it launches.

    An engine delivers `images`: for every process image the table of its basic
    blocks and, per thread, complete and partial executions, rep iterations and
    intervals. It is complete when `run` returns, and consistent whenever it
    is looked at from the thread that runs it. `stats` are its own figures and
    `warnings` what a user must know to read the counts.
    """

    name: str
    takes_singly = False
    """See `livepro.tracee.Listener`."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        self.isa = isa
        self.options = options
        self.tracer = Tracer(
            isa.registers,
            self,
            isa.syscalls.numbers,
            follow_children=options.follow_children,
        )
        self.images: list[ImageRecord] = []
        self.records: dict[TracedProcess, ImageRecord] = {}
        self.stats: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.leaving = False
        self._alike = Alike()
        self._detach = False
        self._forgotten: frozenset[int] = frozenset()
        self._looks = 0
        self.started = time.monotonic()
        self.control = Control(self, self.tracer.waker)
        self.inprocess = InProcess(self, isa)
        self.debuggers = Debuggers(isa, self.warnings)
        self.traps = IgnoredTraps(isa)
        self.region = None if options.region is None else RegionWatch(self, options.region)

    def launch(
        self, executable: str, command: Sequence[str], environment: Mapping[bytes, bytes], *, aslr: bool
    ) -> None:
        """Start a command under the engine. Raises LiveproError when it cannot be started."""
        self.started = self.control.started = time.monotonic()
        self._start_waker()
        self.tracer.launch(executable, command, environment, aslr=aslr)

    def attach(self, pid: int, ppid: int = 0) -> None:
        """Take hold of a process that runs, to be watched from `run` on; several may be. Raises
        OSError when that is refused, LiveproError when livepro itself is; the process is then as it was."""
        self._start_waker()
        process = self.tracer.attach(pid, ppid)
        self.look_ahead(process)
        self.tracer.enter(process)

    def look_ahead(self, process: TracedProcess) -> None:
        """Do what can be done for a process that is attached to while it runs unwatched."""
        return

    def entered(self, process: TracedProcess) -> None:
        """The first of its threads is watched; do what can be done before the others are."""
        return

    @abstractmethod
    def run(self) -> None:
        """Watch until every traced process has ended or been let go."""

    def finish(self) -> None:
        """Close what is still open, so that `images` is complete."""
        self.control.close()
        if self.region is not None:
            self.region.finish()
        self.tracer.waker.stop()
        for image in self.images:
            # Not sorted in place: a list is empty meanwhile, and another thread may look.
            image.tallies = sorted(image.tallies, key=lambda tally: tally.thread.born)
            for tally in image.tallies:
                tally.settle()
                tally.finish()

    # -- letting go

    def request_detach(self) -> None:
        """Have every process let go, as if it had never been watched; then `run` returns. May be
        called from any thread and from signal handlers, before and during the run."""
        self._detach = True
        self.tracer.waker.wake()

    def alerted(self) -> None:
        """Another thread has something for this one to do."""
        if self.leaving:
            self._ask_again()
            self._look_for_forgotten()
        elif self._detach:
            self.leave()
        self.control.serve()

    def _ask_again(self) -> None:
        """Tell threads to stop that have not: the kernel drops a request when another stop comes first
        (ptrace_stop in kernel/signal.c), and not every stop is one that a thread can be let go in."""
        self.tracer.stop_seized()
        for tid in self.tracer.threads:
            if not in_hand(tid):
                interrupt(tid)

    def _look_for_forgotten(self) -> None:
        """Raises RuntimeError if threads that were to be let go have stood still, and been answered nothing,
        for several looks: an error has come between, and they must be rescued."""
        waiting = frozenset(tid for tid in self.tracer.threads if in_hand(tid))
        # (While one has yet to stop, others may wait for that, as before breakpoints are lifted.)
        all_wait = len(waiting) == len(self.tracer.threads)
        self._looks = self._looks + 1 if waiting and all_wait and waiting == self._forgotten else 0
        self._forgotten = waiting
        if self._looks >= _LOOKS:
            raise RuntimeError(f"threads {sorted(waiting)} have stopped, and nobody has let them go on")

    def leave(self) -> None:
        """Begin to let every process go: each thread makes one more stop, and parts."""
        if self.leaving:
            return
        self.leaving = self.tracer.leaving = True
        self.tracer.stop_seized()
        for tid in self.tracer.threads:
            interrupt(tid)

    @abstractmethod
    def homing(self) -> Homing:
        """How threads are brought back to the program's own code after an error."""

    def rescue(self) -> None:
        """After an error of livepro's own: let everything go, each thread as well as still can be
        (`livepro.engines.rescue`). Never raises. For the thread that ran the engine."""
        from livepro.engines.rescue import Rescue  # what few runs need, none should load

        Rescue(self.tracer, self.isa, self.homing()).run()

    def conclude(self) -> None:
        """After a rescue: what has been counted until then becomes the engine's record, complete."""
        self.tracer.conclude()
        self.finish()

    def _start_waker(self) -> None:
        if not self.tracer.waker.pid:
            try:
                self.tracer.waker.start()
            except PermissionError as error:
                raise refused(error) from None
            except OSError as error:  # without one nobody could end the measurement but the program
                raise LiveproError(
                    f"livepro cannot start and trace the process that wakes it: {error.strerror}.",
                    "See how many processes (`ulimit -u`) and files (`ulimit -n`) are allowed. "
                    "The program has not been touched.",
                ) from error
        if self._detach or self.control.asked:  # before there was a waker
            self.tracer.waker.wake()

    def woken(self, thread: TracedThread) -> None:
        """See to it that a system call which gave up for our sake is begun again."""
        registers = thread.registers()
        if self.isa.restart_call(registers):
            thread.set_registers(registers)

    # -- what the tracer tells

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        """Begin an image's record."""
        record = ImageRecord(process)
        if process.wanted:
            self.images.append(record)
        self.records[process] = record
        self.traps.begin(process, parent)
        if self.region is not None and parent is not None:
            self.region.inherit(process, parent)
        if parent is not None and not parent.measured:
            process.measured = False  # it has its parent's memory until it begins an image of its own
            return
        process.measured = self.options.measurable is None or self.options.measurable(process.pid)
        if not process.measured:
            self.warnings.append(
                f"Process {process.pid} ({' '.join(process.command)}) is not an {self.isa.name} program; "
                "it ran, but was not counted."
            )

    def process_ended(self, process: TracedProcess) -> None:
        """An image's record is complete."""
        self.traps.end(process)
        self.records[process].settle(self._alike)
        process.settled()

    def process_replaced(self, process: TracedProcess) -> None:
        """Nothing was watched of an image: it has no record."""
        self.process_ended(process)
        self.images.remove(self.records.pop(process))

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        """Prepare a child that will not be followed; False if it must be, for now."""
        return True

    def called(self, thread: TracedThread) -> None:
        self.resume(thread)  # no thread was asked to stop there

    def stopped(self, thread: TracedThread) -> None:
        """A group stop: as any other stop, for most engines."""
        self.interrupted(thread)

    @abstractmethod
    def thread_started(self, thread: TracedThread) -> None: ...
    @abstractmethod
    def trapped(self, thread: TracedThread) -> None: ...
    @abstractmethod
    def signalled(self, thread: TracedThread, number: int) -> None: ...
    @abstractmethod
    def interrupted(self, thread: TracedThread) -> None: ...
    @abstractmethod
    def exiting(self, thread: TracedThread, in_exec: bool) -> None: ...
    @abstractmethod
    def gone(self, thread: TracedThread) -> None: ...
    @abstractmethod
    def part(self, thread: TracedThread) -> bool: ...
    @abstractmethod
    def resume(self, thread: TracedThread, number: int = 0) -> None: ...

    # -- what a region needs (`engines.region.Bounded`)

    @abstractmethod
    def rearm(self) -> None: ...
    @abstractmethod
    def meter(self, instructions: int) -> None: ...
    @abstractmethod
    def passing(self, arrived: Mapping[int, Arrival]) -> AbstractContextManager[None]: ...
    @abstractmethod
    def called_away(self, arrived: Mapping[int, Arrival]) -> list[int]: ...
    @property
    @abstractmethod
    def metered_left(self) -> int: ...

    def executed(self) -> int:
        """Instructions executed so far by all threads that are measured, whatever resets and pauses leave
        out. Threads are halted."""
        total = 0
        for image in self.images:
            lengths = self.lengths(image)
            for tally in image.tallies:
                if tally.executed is None:
                    total += self.raw_counts(tally).at(self.position(tally)).instructions(lengths)
                else:
                    total += tally.executed
        return total

    def lengths(self, image: ImageRecord) -> Sequence[int] | npt.NDArray[np.int64]:
        """Instructions of each block of an image, by the number that its tallies have for it."""
        return image.store.lengths

    # -- what control needs (`engines.control.Controlled`)

    def raw_counts(self, tally: ThreadTally) -> Counts:
        """All that is in a thread's counts now."""
        return tally.raw_counts()

    def block_lengths(self, tally: ThreadTally) -> Sequence[int] | npt.NDArray[np.int64]:
        """Instructions of each block, by the row that a thread's counts have for it."""
        return tally.store.length_array()

    def block_parts(self, tally: ThreadTally, row: int) -> tuple[bytes, bytes]:
        """A block's bytes, and the sizes of its instructions."""
        return tally.store.codes[row], tally.store.sizes[row]

    @abstractmethod
    def position(self, tally: ThreadTally) -> Position:
        """Where a thread is in the block that it executes, as far as that is known."""

    def vectors(self, tally: ThreadTally) -> Vectors | None:
        """What cuts a thread's basic block vectors, None if there are none to cut."""
        return tally

    def alive(self, tally: ThreadTally) -> bool:
        """Whether a thread may yet execute anything."""
        return self.tracer.threads.get(tally.thread.tid) is tally.thread

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Meanwhile no thread's counts change: they change in this thread's hands only,
        unless an engine says otherwise."""
        yield

    def status(self) -> dict[str, Any]:
        """How far the run is: instructions since the last reset, threads and processes alive, and
        what control has done, in values that JSON knows."""
        progress = self.progress()
        return {
            "engine": self.name,
            "instructions": progress.instructions,
            "threads": progress.threads,
            "processes": progress.processes,
            "pids": [process.pid for process in self.tracer.live],
            "seconds": round(progress.seconds, 3),
            "paused": self.control.paused,
            "snapshots": len(self.control.snapshots),
        }

    # -- while it runs

    @property
    def instructions(self) -> int:
        """Instructions counted so far, of all threads, without what resets and pauses leave out."""
        total = 0
        for image in self.images:
            lengths = image.store.lengths
            for tally in image.tallies:
                window = tally.window
                held = window.held
                total += tally.instructions if held is None else held.instructions(lengths)
                total -= window.base.instructions(lengths)
        return max(total, 0)  # a base may be ahead by the blocks that threads were in

    def live(self, record: ImageRecord, known: Container[TracedThread] = ()) -> LiveCounts | None:
        """The counts of one of `images` so far, threads that are `known` left out; None when it cannot
        be said just now. May be asked from one other thread than the one that runs the engine."""
        return stored(record, known)

    def progress(self) -> Progress:
        """How far the run is. May be asked from another thread than the one that runs the
        engine; raises RuntimeError or KeyError when that one was just changing a table."""
        threads = list(self.tracer.threads.values())  # in one reading: no process is seen without a thread
        processes = len({thread.process for thread in threads})
        return Progress(self.instructions, len(threads), processes, time.monotonic() - self.started)


def run_free(thread: TracedThread, number: int = 0) -> None:
    """Let a thread run unwatched, but for its events."""
    ptrace.call(ptrace.PTRACE_CONT, thread.tid, 0, number)
