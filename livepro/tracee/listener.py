"""What the tracer tells the engine."""

from __future__ import annotations

from typing import Protocol

from livepro.tracee.process import TracedProcess, TracedThread


class Listener(Protocol):
    """What an engine is told. Each thread it is told of is stopped, unless said otherwise."""

    @property
    def takes_singly(self) -> bool:
        """Whether threads of a process that is attached to may run on, not watched yet, beside
        others that are."""

    def entered(self, process: TracedProcess) -> None:
        """The first thread of a process that is attached to, taken singly, has been taken over and
        runs; the others run yet, and are stopped next."""

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        """A process image begins: launched, forked from `parent`, or exec'd."""

    def process_ended(self, process: TracedProcess) -> None:
        """All its threads have gone; `exit` is set, unless an exec ended the image."""

    def process_replaced(self, process: TracedProcess) -> None:
        """An exec has ended the image of a process that was attached to before a thread of it was taken
        over; the next one begins."""

    def thread_started(self, thread: TracedThread) -> None:
        """A thread is about to execute its first instruction."""

    def trapped(self, thread: TracedThread) -> None:
        """A SIGTRAP stop: a step, a breakpoint, or the program's own trap."""

    def signalled(self, thread: TracedThread, number: int) -> None:
        """A signal is about to be delivered, maybe to a thread yet to be taken over; resume with it."""

    def called(self, thread: TracedThread) -> None:
        """An end of a system call, of a thread that was resumed to stop at both."""

    def stopped(self, thread: TracedThread) -> None:
        """The thread enters a group stop; the tracer lets it lie there."""

    def interrupted(self, thread: TracedThread) -> None:
        """A stop that is neither: behind a fork or clone, after SIGCONT, on request."""

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        """The thread has executed its last instruction of this image."""

    def gone(self, thread: TracedThread) -> None:
        """The thread is no more (and cannot be asked anything). `exiting` may have
        come before; after SIGKILL it may not have."""

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        """Let the thread run on, delivering signal `number` if not 0."""

    def alerted(self) -> None:
        """Another thread has woken the tracer: it wants something."""

    def woken(self, thread: TracedThread) -> None:
        """The tracer made the thread stop, wherever it was."""

    def part(self, thread: TracedThread) -> bool:
        """The thread is to be let go: whether it has been, or will be without another stop."""

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        """A child process `tid`, not yet running, is to be left to itself: whether it may.
        If not, since it shares its parent's memory, it is followed until it execs or ends,
        as a process that is not `wanted`."""
