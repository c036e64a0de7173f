"""Limits on open files: livepro's own, and room for one more in a program that has come to its own."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def own_kept() -> Iterator[None]:
    """Whatever is raised meanwhile, this process has the limit that it has now afterwards."""
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        yield
    finally:
        _set_own(former)


def raise_own() -> None:
    """Let this process open as many files as it may: a traced process takes some ten, and shells
    usually give 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    _set_own((hard, hard))


def _set_own(limits: tuple[int, int]) -> None:
    # One from before fs.nr_open was lowered cannot be set to what it is (do_prlimit in kernel/sys.c).
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@contextlib.contextmanager
def room_for_another(pid: int) -> Iterator[None]:
    """Meanwhile, process `pid` may open one file more than it has open. Raises PermissionError where it
    may not be allowed to: above a hard limit only CAP_SYS_RESOURCE goes (prlimit(2))."""
    number = resource.RLIMIT_NOFILE
    soft, hard = resource.prlimit(pid, number)
    # It may have lowered its limit below what it has open.
    highest = max((int(name) for name in os.listdir(f"/proc/{pid}/fd")), default=-1)
    enough = max(soft, highest + 1) + 1
    resource.prlimit(pid, number, (enough, max(enough, hard)))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, number, (soft, hard))
