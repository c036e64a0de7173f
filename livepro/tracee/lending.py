"""A stopped thread lent to livepro for a call: whatever happens meanwhile, it gets back what is its own."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import Any

from livepro.linux import proc, ptrace
from livepro.tracee.process import TracedProcess

_ATTEMPTS = 3


@contextlib.contextmanager
def lent(process: TracedProcess, tid: int, structure: Any, blocked: int) -> Iterator[Any]:
    """Registers that thread `tid` may be given meanwhile, a copy of its own; the signals in `blocked` wait.

    Its own are put back afterwards, and what its stop was for (a breakpoint that it has run into, say,
    not the step of a call); until they are, `process.lent` has them, for whoever lets the thread go in the
    end. Raises OSError.
    """
    if tid not in process.lent:  # else it has not got back its own yet: what it has is a call's
        registers, mask = ptrace.get_registers(tid, structure), ptrace.signal_mask(tid)
        process.lent[tid] = registers, mask, ptrace.signal_info(tid)
    saved = process.lent[tid][0]
    try:
        ptrace.set_signal_mask(tid, blocked)
        yield structure.from_buffer_copy(saved)
    finally:
        give_back(process, tid)


def give_back(process: TracedProcess, tid: int) -> bool:
    """Give a lent thread what is its own: whether there was anything to give. Raises OSError; the thread is
    still lent then."""
    if tid not in process.lent:
        return False
    saved, mask, info = process.lent[tid]
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            ptrace.set_registers(tid, saved)
            ptrace.set_signal_mask(tid, mask)
            if info is not None:
                ptrace.set_signal_info(tid, info)
            break
        except OSError as error:
            if error.errno == errno.ESRCH and proc.dying(tid):
                break
            if attempt == _ATTEMPTS:
                raise  # it runs: the call's end has not been waited for
    process.lent.pop(tid, None)
    return True
