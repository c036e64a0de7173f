"""The program's handler of SIGTRAP, told to the kernel again when it is needed.

The kernel forgets it when a thread that blocks the signal runs into a stop in the cache
(force_sig_info_to_task in kernel/signal.c).
"""

from __future__ import annotations

import signal

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.signals.actions import (
    ACTION_SIZE,
    MASK_SIZE,
    caught_by,
    handler_of,
    with_handler,
)
from livepro.engines.translate.threads.calling import TargetCalls
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.isa.base import Isa
from livepro.tracee import TracedThread

_TRAP = 1 << signal.SIGTRAP - 1


class TrapHandlers:
    """Tells the kernel of handlers again, by `calls` that stopped threads make."""

    def __init__(self, isa: Isa, calls: TargetCalls, syscalls: SyscallMonitor) -> None:
        self._acting = isa.syscalls.numbers["rt_sigaction"]
        self._calls = calls
        self._syscalls = syscalls

    def tell(self, thread: TracedThread, space: CodeCache | None) -> None:
        """A thread has stopped for a SIGTRAP that is about to be delivered to it, maybe before it is watched:
        `space` is its process's code cache, if it has one. Raises OSError."""
        actions = self._syscalls.actions.get(thread.process)
        if space is None or actions is None or actions.trap is None or caught_by(thread.tid) & _TRAP:
            return
        told = actions.trap
        if signal.SIGTRAP in actions.known:
            told = with_handler(told, space.handlers.entry(handler_of(told)))
        at = layout.SCRATCH_ACTION
        space.areas.area(0)[at // 8 : (at + ACTION_SIZE) // 8] = np.frombuffer(told, np.uint64)
        calls = self._calls.inside(thread, space.memory.gadget)
        calls.call(self._acting, signal.SIGTRAP, space.areas.area_address(0) + at, 0, MASK_SIZE)
