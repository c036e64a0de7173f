"""The program's own handlers told to the kernel again, before a thread runs outside the cache."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Protocol

from livepro.engines.translate.signals.actions import (
    ACTION_SIZE,
    MASK_SIZE,
    SignalActions,
    caught_by,
    handler_of,
    with_handler,
)
from livepro.linux import vm


class Calls(Protocol):
    """Makes system calls as a stopped thread."""

    def call(self, number: int, *arguments: int) -> int:
        """Make one; its result. Raises OSError when it fails."""


def give_back(
    calls: Calls, acting: int, tid: int, at: int, handlers: Mapping[int, int], actions: SignalActions
) -> None:
    """Tell the kernel of the program's `handlers`, by their entries, wherever it knows of an entry: it is
    asked, for a process may have been born with what another thread was just telling it. `acting` is the
    number of rt_sigaction, `at` is room for an action in the process, whose thread `tid` is stopped out of
    the cache."""
    if actions.trap is not None and vm.write(tid, at, actions.trap):
        calls.call(acting, signal.SIGTRAP, at, 0, MASK_SIZE)
    caught = caught_by(tid)
    for number in range(1, caught.bit_length() + 1):
        if not caught >> number - 1 & 1:
            continue
        calls.call(acting, number, 0, at, MASK_SIZE)
        told = vm.read(tid, at, ACTION_SIZE)
        if told is None:
            continue
        handler = handlers.get(handler_of(told))
        if handler is not None and vm.write(tid, at, with_handler(told, handler)):
            calls.call(acting, number, at, 0, MASK_SIZE)
