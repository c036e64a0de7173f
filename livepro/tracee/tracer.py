"""The tracer: turns wait statuses into what happened to which thread.

It follows threads and children, exec and exit, signals and group stops, and
tells a listener (the engine). It knows nothing of counting and never resumes
a thread on its own account except through the listener.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence

from livepro.linux import proc, ptrace
from livepro.linux.wait import CALL_STOP, is_stop, stop_event, stop_signal
from livepro.tracee.births import Births, CallLayout
from livepro.tracee.launch import launch
from livepro.tracee.listener import Listener
from livepro.tracee.process import TracedProcess, TracedThread
from livepro.tracee.seize import others_live
from livepro.tracee.stops import WAIT_FLAGS, absorb_trap, end_all, killed, message, traced, unless_killed
from livepro.tracee.taking import BIRTHS, STOPPING, TakingOver
from livepro.tracee.waker import Waker

_OPTIONS = (
    ptrace.PTRACE_O_TRACECLONE
    | ptrace.PTRACE_O_TRACEFORK
    | ptrace.PTRACE_O_TRACEVFORK
    | ptrace.PTRACE_O_TRACEEXEC
    | ptrace.PTRACE_O_TRACEEXIT
    | ptrace.PTRACE_O_TRACESYSGOOD
)


class Tracer(TakingOver):
    """All traced threads of one session, by tid. `processes` are all images, in order of start.

    Without `follow_children` child processes are let go when the listener has been told (`let_go`).
    `births` is told of system calls that may make children.
    `waker` wakes this thread from its wait when another one wants something of it.
    `signals_seen` has the time (of `time.monotonic`) at which each signal was last
    about to be delivered to a thread. `leaving` says that every thread is on its way
    out of the trace: what an exec begins is not followed.
    """

    def __init__(
        self, layout: CallLayout, listener: Listener, numbers: Mapping[str, int], *, follow_children: bool
    ) -> None:
        super().__init__(layout, listener)
        self.births = Births(layout, numbers)
        self.root_status: int | None = None
        self.signals_seen: dict[int, float] = {}
        self.waker = Waker()
        self._options = _OPTIONS
        self._follow = follow_children
        self._live: dict[int, TracedProcess] = {}
        # The first stop of a new child and its parent's event come in either order.
        self._unclaimed: dict[int, int] = {}
        self._awaited: dict[int, tuple[TracedProcess | None, int]] = {}
        # Threads that were killed when they were to be let go: each may stop once more, at its end.
        self._dying: set[int] = set()

    # -- beginning

    def launch(
        self, executable: str, command: Sequence[str], environment: Mapping[bytes, bytes], *, aslr: bool
    ) -> None:
        """Start a command; its first instruction is yet to run, or a signal has ended it before
        that (`root_status`). Raises LiveproError."""
        options = self._options | ptrace.PTRACE_O_EXITKILL
        pid, status = launch(executable, command, environment, aslr=aslr, options=options)
        self._root = pid
        if not is_stop(status):
            self.root_status = status
            return
        process = TracedProcess(pid, os.getpid(), 0, tuple(command), options)
        self._begin(process, None)
        with unless_killed(pid):
            self._start_thread(pid, process)

    def release(self, thread: TracedThread, number: int = 0) -> None:
        """Let a stopped thread go for good, delivering signal `number` if not 0. Its process
        has ended for the listener when no thread of it is left."""
        self.let_run(thread, number)
        self.left(thread)

    def let_run(self, thread: TracedThread, number: int = 0) -> None:
        """The first half of `release`: the thread runs, untraced."""
        self.threads.pop(thread.tid, None)
        try:
            number = absorb_trap(thread.tid) or number
            ptrace.call(ptrace.PTRACE_DETACH, thread.tid, 0, number)
        except OSError:
            if not killed(thread.tid):
                raise
            self._dying.add(thread.tid)  # killed meanwhile
        thread.remember_name()
        if thread.tid == thread.process.pid:
            self._leaderless.add(thread.process)

    def left(self, thread: TracedThread) -> None:
        """The second half: what has been counted of it is written down."""
        self._left(thread.process)

    def _left(self, process: TracedProcess) -> None:
        """A thread is traced no longer: so is its process if it was the last."""
        if process.pid not in self._live or any(t.process is process for t in self.threads.values()):
            return
        if any(other is process for other, _ in (*self._awaited.values(), *self._seized.values())):
            return
        del self._live[process.pid]
        process.memory.close()
        self.listener.process_ended(process)

    def _begin(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        self.processes.append(process)
        self._live[process.pid] = process
        self.listener.process_started(process, parent)

    def _start_thread(self, tid: int, process: TracedProcess, born: int = 0) -> None:
        thread = TracedThread(tid, process, self.layout, born)
        self.threads[tid] = thread
        self.listener.thread_started(thread)
        if not (self.leaving and self.listener.part(thread)):
            self.listener.resume(thread)

    # -- what happened

    def dispatch(self, tid: int, status: int) -> None:
        """Act on one wait status."""
        if tid == self.waker.pid:
            self.waker.go_on()
            self.listener.alerted()
            return
        if not is_stop(status):
            self._ended(tid, status)
            return
        event = stop_event(status)
        thread = self.threads.get(tid)
        try:
            if thread is None and event == ptrace.PTRACE_EVENT_EXEC:
                thread = self._caller(tid, message(tid, event))
            if thread is None:
                self._first_stop(tid, status)
            else:
                self._act(tid, thread, event, stop_signal(status))
        except OSError:
            # Of a thread that has been let go by now nothing more was asked: that has failed for others.
            let_go = thread is not None and tid not in self.threads and event != ptrace.PTRACE_EVENT_EXEC
            if let_go or not killed(tid):
                raise

    def _act(self, tid: int, thread: TracedThread, event: int, number: int) -> None:
        """Act on a stop of a thread; `tid` is its own now, by an exec maybe. Raises OSError."""
        if number == CALL_STOP:
            self.listener.called(thread)
        elif event == 0:
            self.births.settle(thread)
            self._signal(thread, number)
        elif event in BIRTHS:
            self._child(thread, message(tid, event), event)
        elif event == ptrace.PTRACE_EVENT_EXEC:
            self._exec(thread, message(tid, event))
        elif event == ptrace.PTRACE_EVENT_EXIT:
            thread.remember_name()
            self.listener.exiting(thread, in_exec=False)
            departs = tid == thread.process.pid and others_live(tid)
            ptrace.call(ptrace.PTRACE_CONT, tid)
            if departs:
                self._departed(thread)
        elif event == ptrace.PTRACE_EVENT_STOP:
            self._event_stop(thread, number)
        else:
            self.listener.interrupted(thread)
            self.listener.resume(thread)

    def _departed(self, leader: TracedThread) -> None:
        """The first thread of a process ends before others: no status tells of it until they have
        ended, too, and there is nothing to let go of."""
        del self.threads[leader.tid]
        self.listener.gone(leader)
        if self.leaving:
            self._left(leader.process)

    def _event_stop(self, thread: TracedThread, number: int) -> None:
        """A stop without a signal, in which nothing is under way; `number` tells a group stop."""
        stopping = number in STOPPING
        if stopping:
            self.listener.stopped(thread)
        else:
            if self.leaving:
                self.listener.woken(thread)
            self.listener.interrupted(thread)
        if self.leaving and self.listener.part(thread):
            return
        if stopping and not self.leaving:  # else it must get to where it can part, stopped or not
            ptrace.call(ptrace.PTRACE_LISTEN, thread.tid)
        else:
            self.listener.resume(thread)

    def _signal(self, thread: TracedThread, number: int) -> None:
        if number == signal.SIGTRAP:
            self.listener.trapped(thread)
            return
        self.signals_seen[number] = time.monotonic()
        self.listener.signalled(thread, number)

    def _child(self, parent: TracedThread, tid: int, event: int) -> None:
        with unless_killed(parent.tid):
            self.births.born(parent, tid)
            self.listener.interrupted(parent)
        self._adopt(tid, parent.process, event)
        child = self._live.get(tid)
        if child is not None and event == ptrace.PTRACE_EVENT_VFORK:
            child.suspends = parent.tid
        self.listener.resume(parent)

    def _adopt(self, tid: int, parent: TracedProcess, event: int) -> None:
        """A thread or process `tid` was started in `parent`."""
        if tid in self.threads or tid in self._live:
            return  # already, since a process ended
        early = self._unclaimed.pop(tid, None)
        if early is not None and not is_stop(early) and traced(tid):
            early = None  # the end of another one, which had this number before and whose birth nobody told
        if early is None and not (self._follow and parent.wanted):
            # A child to be let go must have stopped for the listener to prepare it.
            early = os.waitpid(tid, WAIT_FLAGS)[1]
        if early is None or is_stop(early):
            self._born += 1
            with unless_killed(tid):  # (It is another one's stop that tells of it.)
                process = self._process_of(tid, parent, event)
                self._awaited[tid] = process, self._born
                if process is not None:
                    process.births.add(self._born)
                if early is not None:
                    self._first_stop(tid, early)

    def _process_of(self, tid: int, parent: TracedProcess, event: int) -> TracedProcess | None:
        """The process that a new child belongs to: its parent's if it is a thread,
        a new one if it is a process, None if such are to be let go."""
        try:
            group = int(proc.status_field(tid, "Tgid"))
        except (OSError, KeyError):
            if not proc.dying(tid):
                raise
            group = tid
        if group == parent.pid:
            return parent
        # clone() with another exit signal than SIGCHLD reports as a clone
        # whatever the options, though it makes a process.
        wanted = self._follow and parent.wanted
        if not wanted and self.listener.let_go(tid, parent):
            return None
        shares_memory = event == ptrace.PTRACE_EVENT_VFORK
        process = TracedProcess(tid, parent.pid, 0, parent.command, parent.options, shares_memory)
        process.wanted = wanted
        self._begin(process, parent)
        return process

    def _first_stop(self, tid: int, status: int) -> None:
        if tid in self._seized:
            self._take_over(tid, status)
            return
        if tid in self._dying:
            ptrace.call(ptrace.PTRACE_CONT, tid)
            return
        if tid not in self._awaited:
            self._unclaimed[tid] = status
            return
        process, born = self._awaited.pop(tid)
        self.births.begin(tid)
        if process is None:
            ptrace.call(ptrace.PTRACE_DETACH, tid)
            return
        self._start_thread(tid, process, born)

    def _exec(self, leader: TracedThread, former: int) -> None:
        """The kernel has killed the other threads and given the caller the leader's tid."""
        old = leader.process
        self._no_longer_seized(old)
        caller = self.threads.get(former, leader)
        for thread in [t for t in self.threads.values() if t.process is old and t is not caller]:
            del self.threads[thread.tid]
            self.listener.gone(thread)
        self.threads.pop(former, None)
        self.listener.exiting(caller, in_exec=True)
        self.listener.gone(caller)
        old.memory.close()
        self.listener.process_ended(old)
        self._next_image(old, old.image + 1)

    def _next_image(self, old: TracedProcess, image: int) -> None:
        """Follow a process into the image that it has begun, whose first instruction is yet to run."""
        if not old.wanted or self.leaving:
            del self._live[old.pid]
            with unless_killed(old.pid):
                ptrace.call(ptrace.PTRACE_DETACH, old.pid)
            return
        new = TracedProcess(old.pid, old.ppid, image, proc.command_line(old.pid), old.options)
        self._begin(new, None)
        self._start_thread(new.pid, new)

    def _ended(self, tid: int, status: int) -> None:
        self._unclaimed.pop(tid, None)
        dying = tid in self._dying
        self._dying.discard(tid)
        if tid == self._root:
            self.root_status = status
        thread = self.threads.pop(tid, None)
        if thread is not None:
            self.listener.gone(thread)
            if thread.process in self._leaderless:
                self._left(thread.process)
        elif tid in self._seized:
            self._lost(tid)
        elif tid in self._awaited:
            self._awaited.pop(tid)
        elif tid not in self._live:
            if not dying:
                self._unclaimed[tid] = status
            return
        process = self._live.get(tid)
        if process is not None:
            self._adopt_untold(process)
            del self._live[tid]
            process.ended(status)
            self.listener.process_ended(process)

    def _adopt_untold(self, parent: TracedProcess) -> None:
        """A process that has ended may have been killed before it could tell of a child: the child has made
        its first stop, and waits."""
        for tid, status in list(self._unclaimed.items()):
            if is_stop(status) and traced(tid) and proc.parent(tid) not in self._live.keys() - {parent.pid}:
                self._adopt(tid, parent, ptrace.PTRACE_EVENT_FORK)

    def note_end(self, tid: int, status: int) -> None:
        """A thread or process has ended while all were let go after an error; nobody is told."""
        self.threads.pop(tid, None)
        if tid == self._root:
            self.root_status = status
        process = self._live.get(tid)
        if process is not None:
            process.ended(status)

    def conclude(self) -> None:
        """After everything was let go because of an error: tell the listener that all threads and
        processes are gone."""
        for thread in list(self.threads.values()):
            self.threads.pop(thread.tid, None)
            self.listener.gone(thread)
        self._seized.clear()
        self._awaited.clear()
        for process in list(dict.fromkeys(self._live.values())):
            self.listener.process_ended(process)

    def wait_for_root(self) -> None:
        """Wait for the end of the process that was launched, which is traced no longer (`root_status`)."""
        root = next((process for process in self.processes if process.pid == self._root), None)
        if self.root_status is None and self._root:
            self.root_status = os.waitpid(self._root, WAIT_FLAGS)[1]
        if root is not None and self.root_status is not None:
            root.ended(self.root_status)
        self._live.clear()

    @property
    def tids(self) -> list[int]:
        """All threads that are traced, or about to be."""
        return [*self.threads, *self._seized, *self._awaited]

    def forget(self, tid: int) -> None:
        """Let a stopped thread go that has not started for the listener."""
        ptrace.call(ptrace.PTRACE_DETACH, tid)
        for waiting in (self._seized, self._awaited):
            process, _ = waiting.pop(tid, (None, 0))
            self._told.discard(tid)
            if process is not None:
                self._left(process)

    @property
    def newborn(self) -> list[TracedProcess]:
        """The process of each thread that is known to exist and has not started for the listener."""
        return [process for process, _ in self._awaited.values() if process is not None]

    @property
    def busy(self) -> bool:
        """Whether there is anything left to trace."""
        return bool(self.threads or self._live or self._awaited)

    def abandon(self) -> None:
        """Kill whatever is still traced and wait for its end, telling nobody. For a thread
        whose only children are its tracees."""
        self.waker.stop()
        end_all((process.pid for process in self.live), self.tids)

    @property
    def live(self) -> list[TracedProcess]:
        """The processes that have not ended."""
        return list(self._live.values())
