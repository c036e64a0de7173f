"""Signals that threads have been let go on with, and may not have taken yet.

The kernel looks at a signal's action when the thread runs again (get_signal in kernel/signal.c), not when
its tracer lets it. If another thread changes the action in between, the thread gets where the tracer did not
mean it to: with registers for a handler's frame it goes on in the program's own code, or it enters a handler
with those of the cache. So whoever is about to change an action waits until all have taken it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from livepro.engines.translate.signals.actions import SignalActions
from livepro.engines.translate.thread import TranslatedThread
from livepro.engines.translate.threads.table import ThreadTable
from livepro.tracee import TracedProcess


class Halting(Protocol):
    """What brings threads to rest: one that was let go on with a signal has then taken it."""

    def halted(self) -> AbstractContextManager[None]:
        """Meanwhile all stand still."""


def settle(
    table: ThreadTable,
    halting: Halting,
    state: TranslatedThread,
    number: int,
    actions: dict[TracedProcess, SignalActions],
) -> None:
    """Wait until each thread that shares a thread's `actions`, and has been let go on with a signal since it
    stopped last (`taking`), has taken it. The thread stands before a system call that it is stepped over."""
    own = actions[state.thread.process]
    waiting = [
        other
        for other in table.states.values()
        if other.taking == number and actions.get(other.thread.process) is own
    ]
    if not waiting:
        return
    stop = state.native
    assert stop is not None
    state.asking = stop.block.position(stop.index, counted=stop.counted)
    try:
        with halting.halted():
            for other in waiting:
                other.taking = 0
    finally:
        state.asking = None
