"""What a ring buffer holds: samples, and what became of the processes sampled."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

_MMAP, _LOST, _COMM, _EXIT, _THROTTLE, _FORK, _SAMPLE, _MMAP2, _LOST_SAMPLES = 1, 2, 3, 4, 5, 7, 9, 10, 13
"""PERF_RECORD_*."""

_COMM_EXEC = 1 << 13  # PERF_RECORD_MISC_COMM_EXEC: the name is new because of an exec

SAMPLE_TYPE = 1 | 2 | 4  # PERF_SAMPLE_IP, _TID, _TIME: what `records` takes samples to hold

_HEADER = struct.Struct("=IHH")  # type, misc, size
_SAMPLE_BODY = struct.Struct("=QIIQ")  # ip, pid, tid, time
_MMAP2_BODY = struct.Struct("=IIQQQ24xII")  # pid, tid, addr, len, pgoff, (device, inode), prot, flags
_PAIR = struct.Struct("=II")
_FORK_BODY = struct.Struct("=IIIIQ")  # pid, ppid, tid, ptid, time
_LOST_BODY = struct.Struct("=QQ")  # id, lost
_NUMBER = struct.Struct("=Q")
_TRAILER = struct.Struct("=IIQ")  # sample_id: pid, tid, time


class Sample(NamedTuple):
    """A thread was at `ip` at `time` (nanoseconds of the kernel's own clock)."""

    time: int
    pid: int
    tid: int
    ip: int


class Mapped(NamedTuple):
    """Code was mapped: the file's bytes from `offset` at [start, end)."""

    time: int
    pid: int
    start: int
    end: int
    offset: int
    path: str


class Forked(NamedTuple):
    """`parent` made `pid`, a process of its own (not a thread)."""

    time: int
    pid: int
    parent: int


class Executed(NamedTuple):
    """A process began another program: its mappings are gone."""

    time: int
    pid: int


class Lost(NamedTuple):
    """`number` records found no room in the buffer; `throttled` says instead that the kernel held samples
    back, for they came too often."""

    time: int
    number: int
    throttled: bool = False


Record = Sample | Mapped | Forked | Executed | Lost


def records(data: bytes) -> Iterator[Record]:
    """The records of a piece of a ring buffer, in the order in which they were written."""
    at = 0
    while at + _HEADER.size <= len(data):
        kind, misc, size = _HEADER.unpack_from(data, at)
        if size < _HEADER.size:
            return
        body = at + _HEADER.size
        end = at + size
        at = end
        if kind == _SAMPLE:
            ip, pid, tid, when = _SAMPLE_BODY.unpack_from(data, body)
            yield Sample(when, pid, tid, ip)
            continue
        when = _TRAILER.unpack_from(data, end - _TRAILER.size)[2]
        if kind == _MMAP2:
            pid, _, start, length, offset, _, _ = _MMAP2_BODY.unpack_from(data, body)
            path = data[body + _MMAP2_BODY.size : end - _TRAILER.size].partition(b"\0")[0]
            yield Mapped(when, pid, start, start + length, offset, os.fsdecode(path))
        elif kind == _COMM and misc & _COMM_EXEC:
            yield Executed(when, _PAIR.unpack_from(data, body)[0])
        elif kind == _FORK:
            pid, parent, _, _, when = _FORK_BODY.unpack_from(data, body)
            if pid != parent:
                yield Forked(when, pid, parent)
        elif kind == _LOST:
            yield Lost(when, _LOST_BODY.unpack_from(data, body)[1])
        elif kind == _LOST_SAMPLES:
            yield Lost(when, _NUMBER.unpack_from(data, body)[0])
        elif kind == _THROTTLE:
            yield Lost(when, 0, throttled=True)
