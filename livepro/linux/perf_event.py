"""perf_event_open(2): does a hardware instruction counter work here?

Layout and constants are those of the kernel header
include/uapi/linux/perf_event.h (struct perf_event_attr, PERF_ATTR_SIZE_VER0).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass
from pathlib import Path

PERF_TYPE_HARDWARE = 0
PERF_COUNT_HW_INSTRUCTIONS = 1
EXCLUDE_KERNEL = 1 << 5
EXCLUDE_HV = 1 << 6
PERF_FLAG_FD_CLOEXEC = 8
ATTR_SIZE_VER0 = 64
ATTR = struct.Struct("=IIQQQQQIIQ")  # type, size, config, sample_period, sample_type, read_format, flags ...

SYSCALL_NUMBER = {"x86_64": 298, "aarch64": 241}
"""Of perf_event_open, by `uname -m` (arch/*/entry/syscalls/*.tbl)."""


@dataclass(frozen=True, slots=True)
class CounterProbe:
    """`works` tells whether a user-mode instruction counter counted; `detail` says
    what was seen, `remedy` what to do (empty when it works or nothing helps)."""

    works: bool
    detail: str
    remedy: str = ""


def open_instruction_counter() -> int:
    """A file descriptor counting this thread's user-mode instructions; OSError if refused."""
    number = SYSCALL_NUMBER.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = EXCLUDE_KERNEL | EXCLUDE_HV
    attr = ATTR.pack(PERF_TYPE_HARDWARE, ATTR_SIZE_VER0, PERF_COUNT_HW_INSTRUCTIONS, 0, 0, 0, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    fd: int = libc.syscall(
        ctypes.c_long(number),
        ctypes.create_string_buffer(attr, len(attr)),
        ctypes.c_int(0),  # this thread
        ctypes.c_int(-1),  # on any processor
        ctypes.c_int(-1),  # no group
        ctypes.c_ulong(PERF_FLAG_FD_CLOEXEC),
    )
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


def probe_instruction_counter() -> CounterProbe:
    """Open a counter, run a little, and see whether it moved."""
    try:
        fd = open_instruction_counter()
    except OSError as error:
        return refused(error)
    try:
        before = read_counter(fd)
        sum(range(1000))
        counted = read_counter(fd) - before
    finally:
        os.close(fd)
    if counted <= 0:
        return CounterProbe(False, "the counter opens but stays at 0")
    return CounterProbe(True, f"counted {counted:,} instructions of a short loop")


def read_counter(fd: int) -> int:
    """The counter's value: one 64-bit integer, for a read_format of 0."""
    return int.from_bytes(os.read(fd, 8), "little")


def refused(error: OSError) -> CounterProbe:
    """Why opening failed, in words."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return CounterProbe(
            False,
            f"not permitted (perf_event_paranoid is {paranoid_level()})",
            "Run `sysctl kernel.perf_event_paranoid=1` as root, or give livepro CAP_PERFMON; "
            "in a container, allow perf_event_open in its seccomp profile.",
        )
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return CounterProbe(False, "none here (usual in virtual machines)")
    if error.errno == errno.ENOSYS:
        return CounterProbe(False, "this kernel has no perf_event_open")
    return CounterProbe(False, f"perf_event_open failed: {error.strerror}")


def paranoid_level() -> str:
    """/proc/sys/kernel/perf_event_paranoid, or ``unknown``."""
    try:
        return Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    except OSError:
        return "unknown"
