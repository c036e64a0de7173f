"""Loading what a command needs, and what Ctrl-C does meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import NumPy without the threads of its linear algebra library, which livepro does not use.

    OpenBLAS starts one for each processor as soon as it is loaded: more work than all the
    rest of NumPy. It reads the variable then only, and programs that livepro runs do not see it.
    """
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        with ended_at_once():
            import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Within this, Ctrl-C ends the process at once, unless somebody sees to it himself (as a measurement does
    for as long as it takes).

    As an exception it can be lost: raised in a callback of the importing machinery it is ignored, and
    compiled modules take it for a failure of what they import.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    # (Only the main thread can say what a signal does.)
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
