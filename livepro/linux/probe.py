"""Does tracing work here, and does block-stepping? Tried on children made for it, never assumed."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from livepro.linux import ptrace

PTRACE_TRACEME = 0  # include/uapi/linux/ptrace.h
PTRACE_GET_SYSCALL_INFO = 0x420E

STEPS = 200
"""Stops compared: some dozens of basic blocks, a few milliseconds."""

LONGEST = 5.0
"""Seconds that a child outlives a parent that is killed."""


class _SyscallInfo(ctypes.Structure):
    """struct ptrace_syscall_info, the part before its union: the same on every machine."""

    _fields_ = (
        ("op", ctypes.c_uint8),
        ("_pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction_pointer", ctypes.c_uint64),
        ("stack_pointer", ctypes.c_uint64),
        ("_rest", ctypes.c_uint64 * 8),
    )


@dataclass(frozen=True, slots=True)
class Probe:
    """`works` tells whether the thing works, `detail` what was seen."""

    works: bool
    detail: str


def probe_tracing() -> Probe:
    """Seize, stop and single-step a child of our own, as a run does."""
    with busy_child() as pid:
        try:
            ptrace.call(ptrace.PTRACE_SEIZE, pid, 0, ptrace.PTRACE_O_EXITKILL)
            ptrace.call(ptrace.PTRACE_INTERRUPT, pid)
            os.waitpid(pid, 0)
            ptrace.call(ptrace.PTRACE_SINGLESTEP, pid)
            os.waitpid(pid, 0)
        except OSError as error:
            return Probe(False, f"refused: {os.strerror(error.errno or 0)}")
    return Probe(True, "seized and single-stepped a child")


def probe_block_step() -> Probe:
    """Run two equal children, one by PTRACE_SINGLESTEP, one by PTRACE_SINGLEBLOCK, and
    compare where they stop.

    Under hypervisors that do not pass on the branch-trap flag the request
    succeeds and steps single instructions: then both stop at the same places.
    """
    try:
        single = stops(ptrace.PTRACE_SINGLESTEP)
        block = stops(ptrace.PTRACE_SINGLEBLOCK)
    except OSError as error:
        if error.errno in (errno.EIO, errno.EINVAL):
            return Probe(False, "this machine has no PTRACE_SINGLEBLOCK")
        return Probe(False, f"refused: {os.strerror(error.errno or 0)}")
    if single == block:
        return Probe(False, f"{STEPS} block-steps were {STEPS} single-steps (usual in virtual machines)")
    return Probe(True, "block-steps run from branch to branch")


def stops(request: int) -> list[int]:
    """Program counters of a child's first `STEPS` stops when it is resumed by `request`."""
    pid = os.fork()
    if pid == 0:
        try:
            ptrace.call(PTRACE_TRACEME, 0)
            signal.raise_signal(signal.SIGSTOP)
            # Enough to execute for every stop that is asked for, alike in each child.
            for _ in range(STEPS):
                pass
        finally:
            os._exit(0)
    out = []
    info = _SyscallInfo()
    with ending(pid):
        stopped(os.waitpid(pid, 0)[1])
        for _ in range(STEPS):
            ptrace.call(request, pid)
            stopped(os.waitpid(pid, 0)[1])
            ptrace.call(PTRACE_GET_SYSCALL_INFO, pid, ctypes.sizeof(info), ctypes.addressof(info))
            out.append(info.instruction_pointer)
    return out


def stopped(status: int) -> None:
    """Raise OSError (EPERM) when the child ended instead: it was not allowed to be traced."""
    if not os.WIFSTOPPED(status):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@contextmanager
def busy_child() -> Iterator[int]:
    """A child that is always about to execute something; killed and reaped at the end.

    One that waits in a system call would wait on when it is stepped.
    """
    pid = os.fork()
    if pid == 0:
        try:
            until = time.monotonic() + LONGEST
            while time.monotonic() < until:
                pass
        finally:
            os._exit(0)
    with ending(pid):
        yield pid


@contextmanager
def ending(pid: int) -> Iterator[None]:
    """Kill and reap `pid` on the way out, whatever state it is in."""
    try:
        yield
    finally:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.WIFSTOPPED(os.waitpid(pid, 0)[1]):
                pass
