"""Processes that run already: seized, and their threads taken over one after the other.

A listener that lets threads run watched beside others that are not yet (`takes_singly`) has
one thread stopped first, through which it enters the process. The others run on until it is
ready for them: each is then held only for as long as it takes to take over that one.
"""

from __future__ import annotations

import errno
import os
import signal
from abc import ABC, abstractmethod

from livepro.linux import proc, ptrace
from livepro.linux.wait import stop_event, stop_signal
from livepro.tracee.descriptors import raise_own
from livepro.tracee.listener import Listener
from livepro.tracee.process import Layout, TracedProcess, TracedThread
from livepro.tracee.seize import Refused, interrupt, others_live, seize
from livepro.tracee.stops import message

STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
BIRTHS = (ptrace.PTRACE_EVENT_FORK, ptrace.PTRACE_EVENT_VFORK, ptrace.PTRACE_EVENT_CLONE)


class TakingOver(ABC):
    """The part of the tracer that takes over threads which run already."""

    def __init__(self, layout: Layout, listener: Listener) -> None:
        self.layout = layout
        self.listener = listener
        self.threads: dict[int, TracedThread] = {}
        self.processes: list[TracedProcess] = []
        self.leaving = False
        self._options = 0
        self._root = 0
        self._born = 0
        self._seized: dict[int, tuple[TracedProcess, int]] = {}
        self._told: set[int] = set()  # to stop, of those
        # The thread through which a process is entered, until it has been.
        self._openers: dict[TracedProcess, int] = {}
        # Processes whose first thread is not traced (any longer), and is none to wait for.
        self._leaderless: set[TracedProcess] = set()

    @abstractmethod
    def release(self, thread: TracedThread, number: int = 0) -> None: ...
    @abstractmethod
    def _begin(self, process: TracedProcess, parent: TracedProcess | None) -> None: ...
    @abstractmethod
    def _adopt(self, tid: int, parent: TracedProcess, event: int) -> None: ...
    @abstractmethod
    def _event_stop(self, thread: TracedThread, number: int) -> None: ...
    @abstractmethod
    def _left(self, process: TracedProcess) -> None: ...
    @abstractmethod
    def _next_image(self, old: TracedProcess, image: int) -> None: ...

    def attach(self, pid: int, ppid: int) -> TracedProcess:
        """Take hold of a process that runs; its threads start for the listener when they stop,
        for which they are told here, or by `enter` if the listener takes them singly.
        Raises Refused, with nothing changed, when that is refused, or no thread is left to be taken:
        they have ended, or are traced since their creator is, of whose child this one will be told."""
        raise_own()
        tids = seize(pid, self._options, stop=not self.listener.takes_singly)
        if not tids:
            raise Refused(errno.ESRCH, os.strerror(errno.ESRCH))
        process = TracedProcess(pid, ppid, 0, proc.command_line(pid), self._options)
        process.attached = True
        self._root = self._root or pid
        for tid in tids:
            self._born += 1
            self._seized[tid] = process, self._born
            process.births.add(self._born)
        if not self.listener.takes_singly:
            self._told.update(tids)
        if pid not in tids:
            self._leaderless.add(process)
        self._begin(process, None)
        return process

    def enter(self, process: TracedProcess) -> None:
        """Have one thread of a process stop, through which the listener enters it."""
        if not self.listener.takes_singly:
            return
        tids = self.to_be_taken(process)
        if tids:
            # One that waits loses nothing while it is held.
            opener = next((tid for tid in tids if proc.thread_state(tid) == "S"), tids[0])
            self._openers[process] = opener
            self._tell(opener)

    def to_be_taken(self, process: TracedProcess) -> list[int]:
        """The threads of a process that have been seized, and not taken over yet."""
        return [tid for tid, (other, _) in self._seized.items() if other is process]

    @property
    def taken(self) -> bool:
        """Whether every thread that was seized has been taken over."""
        return bool(self.processes) and not self._seized

    def stop_seized(self) -> None:
        """Have every thread that has been seized stop, to be let go."""
        for tid in self._seized:
            self._tell(tid)

    def _tell(self, tid: int) -> None:
        self._told.add(tid)
        interrupt(tid)

    def _take_over(self, tid: int, status: int) -> None:
        """A thread that has been seized while it ran stops for the first time."""
        process, born = self._seized[tid]
        event, number = stop_event(status), stop_signal(status)
        if event != ptrace.PTRACE_EVENT_STOP:
            # Something else comes first.
            if event in BIRTHS:
                self._adopt(message(tid, event), process, event)
            elif event == ptrace.PTRACE_EVENT_EXEC:
                # The others are no more; nothing has been entered, or the tracer would know of a thread.
                self._no_longer_seized(process)
                self._openers.pop(process, None)
                self._replaced(process)
                return
            if tid in self._told:
                interrupt(tid)  # again: any stop makes the kernel forget it (ptrace_stop in kernel/signal.c)
            departs = event == ptrace.PTRACE_EVENT_EXIT and tid == process.pid and others_live(tid)
            if event:
                ptrace.call(ptrace.PTRACE_CONT, tid)
            else:
                self.listener.signalled(TracedThread(tid, process, self.layout, born), number)
            if departs:
                self._lost(tid)  # no status tells of a leader's end before that of all others
            return
        del self._seized[tid]
        self._told.discard(tid)
        thread = TracedThread(tid, process, self.layout, born)
        thread.attached = True
        self.threads[tid] = thread
        if number not in STOPPING:
            self.listener.woken(thread)
        if self.leaving:
            self.listener.part(thread)
            return
        self.listener.thread_started(thread)
        opens = self._openers.pop(process, None) is not None
        self._event_stop(thread, number)
        if opens:
            self.listener.entered(process)
            for other in self.to_be_taken(process):
                self._tell(other)

    def _caller(self, pid: int, former: int) -> TracedThread | None:
        """Who has begun another image of process `pid`, whose leader is not known as a thread, or not
        as one that has been taken over; None if no thread of it has been."""
        if pid not in self._seized and former in self._seized:
            self._seized[pid] = self._seized.pop(former)  # it has the leader's place from now on
            if former in self._told:
                self._told.discard(former)
                self._told.add(pid)
            self._leaderless.discard(self._seized[pid][0])
        if pid not in self._seized:
            return self.threads.get(former)
        process, born = self._seized[pid]
        if not any(thread.process is process for thread in self.threads.values()):
            return None
        return self.threads.get(former) or TracedThread(pid, process, self.layout, born)

    def _replaced(self, old: TracedProcess) -> None:
        """A process has begun another image before a thread of the one that it was attached to was taken
        over: that one is none of the run's."""
        old.memory.close()
        self.listener.process_replaced(old)
        self.processes.remove(old)
        self._next_image(old, old.image)

    def _no_longer_seized(self, process: TracedProcess) -> None:
        for tid in self.to_be_taken(process):
            del self._seized[tid]
            self._told.discard(tid)

    def _lost(self, tid: int) -> None:
        """A seized thread has ended, or will without another word."""
        process, born = self._seized.pop(tid)
        self._told.discard(tid)
        if self._openers.get(process) == tid:
            self.enter(process)
        if self.leaving:
            self.listener.gone(TracedThread(tid, process, self.layout, born))
        if process in self._leaderless:
            self._left(process)
