"""Writes of a process to pages of its own that wait until somebody knows: userfaultfd(2), write-protect mode.

A thread that writes to a protected page, itself or through a system call, waits until the page is given
free. The program cannot tell: protections and faults stay what they were. When the descriptor
is closed, by whatever end of its owner's, all pages are free and whoever waits goes on.

Numbers and structures: include/uapi/linux/userfaultfd.h, include/uapi/asm-generic/ioctl.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
from collections.abc import Callable, Mapping

_API = 0xAA
_API_CALL, _REGISTER, _WRITE_PROTECT = 0xC018AA3F, 0xC020AA00, 0xC018AA06
_FEATURE_WRITE_PROTECT = 1  # UFFD_FEATURE_PAGEFAULT_FLAG_WP
_MODE_WRITE_PROTECT = 2  # UFFDIO_REGISTER_MODE_WP
_PROTECT = 1  # UFFDIO_WRITEPROTECT_MODE_WP
_USER_MODE_ONLY = 1  # what anybody may ask for: system calls that write then fail with EFAULT
_MESSAGE = struct.Struct("<B7xQQ8x")  # struct uffd_msg of a fault: event, flags, address
_FAULT = 0x12  # UFFD_EVENT_PAGEFAULT
_MESSAGES = 16  # read at once

_PIDFD_GETFD = 438  # include/uapi/asm-generic/unistd.h; the same for every architecture

_library = ctypes.CDLL(None, use_errno=True)


def _descriptor_of(pid: int, descriptor: int) -> int:
    """A copy of another process's descriptor. Raises OSError."""
    process = os.pidfd_open(pid)
    try:
        return call_here(_PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)


def call_here(number: int, *arguments: int) -> int:
    """Make a system call. Raises OSError where it fails."""
    result = int(_library.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


class WriteFaults:
    """Pages of one process that wait to be given free before they are written to.

    `call` makes a system call inside the process `pid`, whose numbers are `numbers`; it raises OSError
    where that fails, and so does this. `whole` says that the process's system calls wait, too:
    where they do not, they fail with EFAULT.
    """

    def __init__(self, pid: int, call: Callable[..., int], numbers: Mapping[str, int]) -> None:
        flags = os.O_CLOEXEC | os.O_NONBLOCK
        self.whole = True
        try:
            there = call(numbers["userfaultfd"], flags)
        except PermissionError:  # for CAP_SYS_PTRACE only, unless vm.unprivileged_userfaultfd is set
            self.whole = False
            there = call(numbers["userfaultfd"], flags | _USER_MODE_ONLY)
        try:
            self._descriptor = _descriptor_of(pid, there)
        finally:
            call(numbers["close"], there)
        try:
            self._control(_API_CALL, struct.pack("<3Q", _API, _FEATURE_WRITE_PROTECT, 0))
        except OSError:  # a kernel before 5.7, or a machine without
            os.close(self._descriptor)
            raise
        self._waker = os.eventfd(0)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)
        self._poll.register(self._waker, select.POLLIN)

    def _control(self, request: int, argument: bytes) -> None:
        fcntl.ioctl(self._descriptor, request, bytearray(argument))

    def watch(self, start: int, end: int) -> None:
        """Make pages in [start, end), private memory of no file, such as can be protected. Raises OSError."""
        self._control(_REGISTER, struct.pack("<4Q", start, end - start, _MODE_WRITE_PROTECT, 0))

    def protect(self, start: int, end: int) -> None:
        """Have those who write to [start, end), which is watched, wait. Raises OSError."""
        self._control(_WRITE_PROTECT, struct.pack("<3Q", start, end - start, _PROTECT))

    def free(self, start: int, end: int) -> None:
        """Let [start, end) be written to, and those who wait for that go on. Raises OSError where it is no
        longer watched, as nobody waits then."""
        self._control(_WRITE_PROTECT, struct.pack("<3Q", start, end - start, 0))

    def wanted(self, timeout: float) -> list[int]:
        """The pages (addresses) that threads wait to write to; none after `timeout` seconds, or `enough`."""
        if not self._poll.poll(timeout * 1000):
            return []
        try:
            data = os.read(self._descriptor, _MESSAGES * _MESSAGE.size)
        except BlockingIOError:  # they have been given free meanwhile
            return []
        return [address for event, _, address in _MESSAGE.iter_unpack(data) if event == _FAULT]

    def enough(self) -> None:
        """Let whoever asks what is `wanted` wait no longer, from now on."""
        os.eventfd_write(self._waker, 1)

    def close(self) -> None:
        """Protect nothing any more: who waits goes on. To be called once."""
        os.close(self._descriptor)
        os.close(self._waker)
