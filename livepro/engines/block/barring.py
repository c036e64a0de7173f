"""Sites that are barred: only the processor may execute what stands there.

To bar a site that is planted, all threads that may be running towards it are interrupted first and
become stepped ones where they stand. Such threads are never inside a system call, so the program notices
nothing of the interruption. The same is done where one instruction turns out to lie inside another (jumps
into the middle of instructions), and before code becomes writable (`spaces`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from livepro.engines.block.text import Site, Text
from livepro.engines.block.thread import BlockThread
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.tracee import TracedProcess
from livepro.tracee.stops import failed


class Barrier:
    """Bars sites, and lifts their breakpoints once no thread runs towards them.

    `running` are the threads by tid, `texts` the code of processes; `go` lets a thread run on. `barred`
    counts the sites.
    """

    def __init__(
        self,
        isa: Isa,
        running: Mapping[int, BlockThread],
        texts: Mapping[TracedProcess, Text],
        go: Callable[[BlockThread], None],
    ) -> None:
        self.barred = 0
        self._advance = isa.breakpoint.pc_advance
        self._running = running
        self._texts = texts
        self._go = go

    def bar(self, text: Text, sites: Sequence[Site], state: BlockThread, *, forget: bool = False) -> None:
        """Let only the processor execute what stands at `sites` from now on (`forget`: as long
        as it stands there). `state` is the thread at hand; it must be let run by `BlockRunner.go`."""
        leaving = []
        for site in sites:
            self.barred += not site.barred
            site.barred = True
            if site.planted and (forget or site not in text.leaving):
                leaving.append(site)
                text.leaving[site] = forget
            elif forget:
                text.forget(site)
        if not leaving:
            return
        ends = [site.address + self._advance for site in leaving]
        for tid, other in self._running.items():
            plan = other.plan
            if other is state or plan is None or other.text is not text or other.owed or tid in text.waiting:
                continue
            if any(end in plan.ends for end in ends):
                text.pending.add(tid)
                interrupt(tid)
        text.suspend()
        if not text.pending:
            self.give_back(text)

    def no_longer_running(self, state: BlockThread) -> None:
        """A thread that others may have waited for has stopped."""
        pending = state.text.pending
        if state.thread.tid in pending:
            pending.discard(state.thread.tid)
            if not pending:
                self.give_back(state.text)

    def give_back(self, text: Text) -> None:
        """No thread is running towards the sites in `text.leaving`: lift them, and go on."""
        memory = next((p.memory for p, t in self._texts.items() if t is text), None)
        for site, forget in text.leaving.items():
            if memory is not None:
                with contextlib.suppress(OSError):
                    text.lift(site, memory)
            if forget:
                text.forget(site)
        text.leaving.clear()
        text.renew()
        waiting, text.waiting = text.waiting, []
        for tid in waiting:
            state = self._running.get(tid)
            if state is not None:
                self._go(state)


def interrupt(tid: int) -> None:
    """Tell a thread to stop. Raises OSError, but not for one that has been killed."""
    if ptrace.raw(ptrace.PTRACE_INTERRUPT, tid, None, None) == -1:
        failed(tid)
