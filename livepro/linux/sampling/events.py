"""Opening sampling events, one for each thread and processor, with a ring buffer for each processor."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from livepro.errors import LiveproError
from livepro.linux import perf_event
from livepro.linux.sampling.records import SAMPLE_TYPE

_PERF_TYPE_SOFTWARE = 1
_CPU_CYCLES, _CPU_CLOCK = 0, 0  # PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CPU_CLOCK

_DISABLED, _INHERIT, _MMAP, _COMM, _FREQ = 1 << 0, 1 << 1, 1 << 8, 1 << 9, 1 << 10
_ENABLE_ON_EXEC, _TASK, _WATERMARK, _SAMPLE_ID_ALL = 1 << 12, 1 << 13, 1 << 14, 1 << 18
_MMAP2, _COMM_EXEC = 1 << 23, 1 << 24
_RECORDS = _MMAP | _MMAP2 | _COMM | _COMM_EXEC | _TASK | _SAMPLE_ID_ALL

_SET_OUTPUT = 0x2405  # PERF_EVENT_IOC_SET_OUTPUT
_DISABLE = 0x2401  # PERF_EVENT_IOC_DISABLE

_PAGES = 64
"""Data pages of a buffer, a power of two: 256 KB hold 8,000 samples, within what users may lock by
default (kernel.perf_event_mlock_kb is 516)."""

_HEAD, _TAIL = 1024, 1032  # of struct perf_event_mmap_page: data_head, data_tail
_WORD = struct.Struct("=Q")
_ABSENT = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV)


class Source(NamedTuple):
    """What makes samples: a name for people, and the kernel's type and number of the event."""

    name: str
    kind: int
    config: int


CYCLES = Source("cycles", perf_event.PERF_TYPE_HARDWARE, _CPU_CYCLES)
CLOCK = Source("software clock", _PERF_TYPE_SOFTWARE, _CPU_CLOCK)


class Ring:
    """A buffer that the kernel writes records into, and this process reads."""

    def __init__(self, descriptor: int) -> None:
        self._size = _PAGES * mmap.PAGESIZE
        self._map = mmap.mmap(descriptor, self._size + mmap.PAGESIZE)

    def read(self) -> bytes:
        """What has been written since the last time."""
        (head,) = _WORD.unpack_from(self._map, _HEAD)
        (tail,) = _WORD.unpack_from(self._map, _TAIL)
        if head == tail:
            return b""
        first, last = tail % self._size, head % self._size
        base = mmap.PAGESIZE
        if first < last:
            data = self._map[base + first : base + last]
        else:
            data = self._map[base + first : base + self._size] + self._map[base : base + last]
        _WORD.pack_into(self._map, _TAIL, head)
        return data

    def close(self) -> None:
        """Unmap it."""
        self._map.close()


class Sampler:
    """Events that sample threads and all that these start from then on, `frequency` times a second of
    processor time each.

    With `on_exec` sampling begins when a thread executes a program. Raises LiveproError, with what to do,
    where the kernel refuses.
    """

    def __init__(self, tids: Iterable[int], frequency: int, on_exec: bool) -> None:
        self._frequency = frequency
        self._flags = _DISABLED | _ENABLE_ON_EXEC if on_exec else 0
        self._descriptors: list[int] = []
        self.rings: dict[int, Ring] = {}
        self._outputs: dict[int, int] = {}
        self.source = CYCLES
        try:
            for tid in tids:
                self.add(tid)
        except BaseException:
            self.close()
            raise

    @property
    def descriptors(self) -> list[int]:
        """One for each ring, ready to be read when it fills."""
        return list(self._outputs.values())

    def add(self, tid: int) -> None:
        """Sample a thread, too. One that has ended meanwhile is nothing to sample."""
        for processor in sorted(os.sched_getaffinity(0) | _online()):
            try:
                descriptor = self._open(tid, processor)
            except OSError as error:
                if error.errno == errno.ESRCH:
                    return
                raise _refused(error, self._frequency, tid) from error
            self._descriptors.append(descriptor)
            if processor in self.rings:
                fcntl.ioctl(descriptor, _SET_OUTPUT, self._outputs[processor])
                continue
            try:
                self.rings[processor] = Ring(descriptor)
            except OSError as error:
                raise LiveproError(
                    f"There is no memory for a sampling buffer: {os.strerror(error.errno or 0)}.",
                    "Raise `sysctl kernel.perf_event_mlock_kb` as root, or run livepro as root.",
                ) from error
            self._outputs[processor] = descriptor

    def _open(self, tid: int, processor: int) -> int:
        try:
            return _open_event(self.source, tid, processor, self._frequency, self._flags)
        except OSError as error:
            # Virtual machines have no cycle counter, mostly; then the clock's interrupts must do.
            if error.errno not in _ABSENT or self.source is CLOCK:
                raise
            self.source = CLOCK
            return _open_event(self.source, tid, processor, self._frequency, self._flags)

    def stop(self) -> None:
        """Take no more samples; what is in the rings can still be read."""
        for descriptor in self._descriptors:
            fcntl.ioctl(descriptor, _DISABLE, 1)

    def close(self) -> None:
        """Give everything back."""
        for ring in self.rings.values():
            ring.close()
        self.rings.clear()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()


def _is_another_users(tid: int) -> bool:
    try:
        return os.stat(f"/proc/{tid}").st_uid != os.geteuid()
    except OSError:
        return False


def _online() -> set[int]:
    """The processors that are there (Documentation/admin-guide/cputopology.rst)."""
    out: set[int] = set()
    for part in Path("/sys/devices/system/cpu/online").read_text().strip().split(","):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


def _open_event(source: Source, tid: int, processor: int, frequency: int, flags: int) -> int:
    flags |= perf_event.EXCLUDE_KERNEL | perf_event.EXCLUDE_HV | _INHERIT | _FREQ | _WATERMARK | _RECORDS
    wakeup = _PAGES * mmap.PAGESIZE // 4  # bytes: a quarter of the buffer
    attr = perf_event.ATTR.pack(
        source.kind,
        perf_event.ATTR_SIZE_VER0,
        source.config,
        frequency,
        SAMPLE_TYPE,
        0,
        flags,
        wakeup,
        0,
        0,
    )
    number = perf_event.SYSCALL_NUMBER.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    descriptor: int = libc.syscall(
        ctypes.c_long(number),
        ctypes.create_string_buffer(attr, len(attr)),
        ctypes.c_int(tid),
        ctypes.c_int(processor),
        ctypes.c_int(-1),  # no group
        ctypes.c_ulong(perf_event.PERF_FLAG_FD_CLOEXEC),
    )
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def _refused(error: OSError, frequency: int, tid: int) -> LiveproError:
    """Why sampling `tid` is not possible, and what to do."""
    if error.errno in (errno.EACCES, errno.EPERM) and _is_another_users(tid):
        return LiveproError(
            f"The process {tid} is another user's: the kernel does not let livepro sample it.",
            "Run livepro as that user, or as root.",
        )
    if error.errno == errno.EINVAL:
        most = Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text().strip()
        if frequency > int(most):
            return LiveproError(
                f"The kernel takes no more than {most} samples a second, and {frequency} are asked for.",
                "Give a lower --frequency, or raise `sysctl kernel.perf_event_max_sample_rate` as root.",
            )
    if error.errno == errno.EMFILE:
        return LiveproError(
            "Sampling takes a file descriptor for each thread and processor, and there are no more.",
            "Raise the limit: `ulimit -n 65536`.",
        )
    probe = perf_event.refused(error)
    remedy = probe.remedy or "`livepro blocks run` counts exactly, and needs no permission of this kind."
    return LiveproError(f"The kernel does not let livepro take samples: {probe.detail}.", remedy)
