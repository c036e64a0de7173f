"""Restartable sequences (include/uapi/linux/rseq.h): a thread that is stopped in one has to begin anew.

The kernel puts a thread that it has interrupted in such a sequence on the sequence's abort handler,
when it lets the thread run on: by where the thread is then, which livepro changes.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

from livepro.linux import ptrace

# struct ptrace_rseq_configuration (include/uapi/linux/ptrace.h): where the thread's struct rseq is.
_CONFIGURATION = struct.Struct("<QIIII")
_SEQUENCE_AT = 8  # rseq_cs in struct rseq
_SEQUENCE = struct.Struct("<IIQQQ")
"""struct rseq_cs: version, flags, start_ip, post_commit_offset, abort_ip."""


def abort(tid: int, pc: int, read: Callable[[int, int], bytes], write: Callable[[int, bytes], None]) -> int:
    """Where a stopped thread that is at `pc` has to go on: there, or at the abort handler of the
    sequence that it is in, which is over then. `read` and `write` are its memory's."""
    buffer = ctypes.create_string_buffer(_CONFIGURATION.size)
    where = ctypes.addressof(buffer)
    if ptrace.raw(ptrace.PTRACE_GET_RSEQ_CONFIGURATION, tid, _CONFIGURATION.size, where) <= 0:
        return pc  # a kernel without (before 5.13), or a thread that is gone
    area = _CONFIGURATION.unpack(buffer.raw)[0]
    if not area:
        return pc
    pointer = int.from_bytes(read(area + _SEQUENCE_AT, 8), "little")
    text = read(pointer, _SEQUENCE.size) if pointer else b""
    if len(text) < _SEQUENCE.size:
        return pc
    _, _, start, size, handler = _SEQUENCE.unpack(text)
    if not start <= pc < start + size:
        return pc
    write(area + _SEQUENCE_AT, bytes(8))
    return int(handler)
