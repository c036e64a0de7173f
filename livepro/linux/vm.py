"""Another process's memory as that process itself may access it; who shares memory with whom."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable

_library = ctypes.PyDLL(None, use_errno=True)
_readv = _library.process_vm_readv
_writev = _library.process_vm_writev
for _function in (_readv, _writev):
    _function.restype = ctypes.c_ssize_t
    _function.argtypes = (
        ctypes.c_long,
        ctypes.c_void_p,
        ctypes.c_long,
        ctypes.c_void_p,
        ctypes.c_long,
        ctypes.c_long,
    )

_KCMP_VM, _KCMP_SIGHAND = 1, 4  # include/uapi/linux/kcmp.h
_WORD = 8


class Words:
    """A process's memory, a 64-bit word at a time.

    process_vm_readv(2) and process_vm_writev(2) obey page protections, which
    /proc/PID/mem and PTRACE_POKEDATA do not; neither do they grow the stack.
    """

    def __init__(self, tid: int) -> None:
        # Two struct iovec, local and remote, and the word: in one array, addressed as such.
        self._vectors = (ctypes.c_uint64 * 5)()
        here = ctypes.addressof(self._vectors)
        self._local, self._remote = here, here + 16
        self._view = memoryview(self._vectors).cast("B").cast("Q")
        self._view[0], self._view[1], self._view[3] = here + 32, _WORD, _WORD
        self._tid = tid

    def read(self, address: int) -> int:
        """The unsigned word at `address`, -1 where the process may not read (or is gone)."""
        self._view[2] = address
        if _readv(self._tid, self._local, 1, self._remote, 1, 0) != _WORD:
            return -1
        return self._view[4]

    def write(self, address: int, value: int) -> bool:
        """Set the word at `address`; False where the process may not write (or is gone).

        A word that crosses into a page that cannot be written is written in part.
        """
        self._view[2] = address
        self._view[4] = value
        return bool(_writev(self._tid, self._local, 1, self._remote, 1, 0) == _WORD)


def _transfer(call: Callable[..., int], tid: int, address: int, buffer: ctypes.Array[ctypes.c_char]) -> bool:
    size = len(buffer)
    vectors = (ctypes.c_uint64 * 4)(ctypes.addressof(buffer), size, address, size)
    here = ctypes.addressof(vectors)
    return bool(call(tid, here, 1, here + 16, 1, 0) == size)


def read(tid: int, address: int, size: int) -> bytes | None:
    """Memory as the process itself may read it; None where it may not."""
    buffer = ctypes.create_string_buffer(size)
    return buffer.raw if _transfer(_readv, tid, address, buffer) else None


def write(tid: int, address: int, data: bytes) -> bool:
    """Write memory as the process itself may; False where it may not."""
    return _transfer(_writev, tid, address, ctypes.create_string_buffer(data, len(data)))


def send(tgkill: int, pid: int, tid: int, number: int) -> None:
    """Send signal `number` to a thread of process `pid`. Raises OSError.

    `tgkill` is the number of the system call of that name, for which older C libraries have no function.
    """
    ctypes.set_errno(0)
    if _library.syscall(*(ctypes.c_long(n) for n in (tgkill, pid, tid, number))) == -1:
        raise OSError(ctypes.get_errno(), f"tgkill({pid}, {tid}, {number})")


def shares_memory(kcmp: int, tid: int, other: int) -> bool | None:
    """Whether two threads share their memory; None if the kernel does not say.

    `kcmp` is the number of the system call of that name, for which C libraries
    have no function (kcmp(2); it may be configured out or forbidden).
    """
    return _shares(kcmp, tid, other, _KCMP_VM)


def shares_handlers(kcmp: int, tid: int, other: int) -> bool | None:
    """Whether two threads share their signal handlers, likewise."""
    return _shares(kcmp, tid, other, _KCMP_SIGHAND)


def _shares(kcmp: int, tid: int, other: int, what: int) -> bool | None:
    ctypes.set_errno(0)
    order = _library.syscall(
        *(ctypes.c_long(n) for n in (kcmp, tid, other, what, 0, 0)),
    )
    if order == -1 and ctypes.get_errno() in (errno.ENOSYS, errno.EPERM, errno.EACCES, errno.ESRCH):
        return None
    return bool(order == 0)
