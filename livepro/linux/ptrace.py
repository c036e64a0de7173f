"""ptrace requests, thin: python-ptrace's constants, one bound function for the hot path.

The step engine makes two requests per instruction. python-ptrace's wrappers
build objects and look errors up on every call, so the hot requests go straight
to the C library's `ptrace`. It is bound through `ctypes.PyDLL`, which keeps
the interpreter lock: none of these requests blocks, and giving the lock away
and taking it back costs as much as the request.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from typing import Any

from ptrace.binding.func import (
    PTRACE_CONT,
    PTRACE_DETACH,
    PTRACE_EVENT_CLONE,
    PTRACE_EVENT_EXEC,
    PTRACE_EVENT_EXIT,
    PTRACE_EVENT_FORK,
    PTRACE_EVENT_VFORK,
    PTRACE_EVENT_VFORK_DONE,
    PTRACE_GETEVENTMSG,
    PTRACE_GETREGSET,
    PTRACE_GETSIGINFO,
    PTRACE_O_TRACECLONE,
    PTRACE_O_TRACEEXEC,
    PTRACE_O_TRACEEXIT,
    PTRACE_O_TRACEFORK,
    PTRACE_O_TRACESYSGOOD,
    PTRACE_O_TRACEVFORK,
    PTRACE_PEEKUSER,
    PTRACE_POKEUSER,
    PTRACE_SETREGSET,
    PTRACE_SETSIGINFO,
    PTRACE_SINGLESTEP,
    PTRACE_SYSCALL,
)

# What python-ptrace does not name: include/uapi/linux/ptrace.h.
PTRACE_SINGLEBLOCK = 33  # arch/x86/include/uapi/asm/ptrace-abi.h
PTRACE_SETOPTIONS = 0x4200
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
PTRACE_LISTEN = 0x4208
PTRACE_GETSIGMASK = 0x420A
PTRACE_SETSIGMASK = 0x420B
PTRACE_GET_RSEQ_CONFIGURATION = 0x420F
PTRACE_EVENT_STOP = 128
PTRACE_O_EXITKILL = 0x00100000
PTRACE_O_SUSPEND_SECCOMP = 0x00200000

NT_PRSTATUS = 1  # include/uapi/linux/elf.h
NT_X86_XSTATE = 0x202

# si_code of SIGTRAP stops: include/uapi/asm-generic/siginfo.h.
TRAP_BRKPT = 1
TRAP_TRACE = 2

__all__ = [
    "NT_PRSTATUS",
    "NT_X86_XSTATE",
    "PTRACE_CONT",
    "PTRACE_DETACH",
    "PTRACE_EVENT_CLONE",
    "PTRACE_EVENT_EXEC",
    "PTRACE_EVENT_EXIT",
    "PTRACE_EVENT_FORK",
    "PTRACE_EVENT_STOP",
    "PTRACE_EVENT_VFORK",
    "PTRACE_EVENT_VFORK_DONE",
    "PTRACE_GETREGSET",
    "PTRACE_GET_RSEQ_CONFIGURATION",
    "PTRACE_INTERRUPT",
    "PTRACE_LISTEN",
    "PTRACE_O_EXITKILL",
    "PTRACE_O_SUSPEND_SECCOMP",
    "PTRACE_O_TRACECLONE",
    "PTRACE_O_TRACEEXEC",
    "PTRACE_O_TRACEEXIT",
    "PTRACE_O_TRACEFORK",
    "PTRACE_O_TRACESYSGOOD",
    "PTRACE_O_TRACEVFORK",
    "PTRACE_POKEUSER",
    "PTRACE_SEIZE",
    "PTRACE_SETOPTIONS",
    "PTRACE_SETREGSET",
    "PTRACE_SINGLEBLOCK",
    "PTRACE_SINGLESTEP",
    "PTRACE_SYSCALL",
    "TRAP_BRKPT",
    "TRAP_TRACE",
    "IoVec",
    "call",
    "event_message",
    "get_registers",
    "get_regset",
    "has_regset",
    "lean",
    "peek_user",
    "poke_user",
    "program_counter_reader",
    "program_counter_writer",
    "raw",
    "set_registers",
    "set_regset",
    "set_signal_info",
    "set_signal_mask",
    "signal_info",
    "signal_mask",
    "unblock",
]


class IoVec(ctypes.Structure):
    """struct iovec (include/uapi/linux/uio.h), which GETREGSET and SETREGSET take the address of."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class SignalInfo(ctypes.Structure):
    """The head of siginfo_t (include/uapi/asm-generic/siginfo.h), padded to its 128 bytes.

    `pid` and `uid` hold for signals sent by a process, `address` overlays
    them for faults.
    """

    _fields_ = (
        ("signo", ctypes.c_int),
        ("errno", ctypes.c_int),
        ("code", ctypes.c_int),
        ("_pad", ctypes.c_int),
        ("pid", ctypes.c_int),
        ("uid", ctypes.c_uint),
        ("_rest", ctypes.c_byte * 104),
    )

    @property
    def address(self) -> int:
        """The address of a fault."""
        return self.pid & 0xFFFF_FFFF | self.uid << 32

    @address.setter
    def address(self, value: int) -> None:
        self.pid, self.uid = ctypes.c_int(value & 0xFFFF_FFFF).value, value >> 32


_library = ctypes.PyDLL(None, use_errno=True)
raw: Callable[[int, int, int | None, int | None], int] = _library.ptrace
"""`ptrace(request, tid, address, data)`: the C function, -1 on failure, no exception."""
_library.ptrace.restype = ctypes.c_long
_library.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

_untyped = ctypes.PyDLL(None)
lean: Callable[[int, int, int | None, ctypes.c_void_p | None], int] = _untyped.ptrace
"""`raw` for small integers (an offset) and c_void_p only: ctypes passes integers as C's int.
Checking against argument types would take half the time of a call."""
_untyped.ptrace.restype = ctypes.c_long


def call(request: int, tid: int, address: int = 0, data: int = 0) -> None:
    """Make one request. Raises OSError (ProcessLookupError when the thread is gone
    or not stopped)."""
    if raw(request, tid, address, data) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace({request:#x}, {tid}): {os.strerror(code)}")


def peek_user(tid: int, offset: int) -> int:
    """The 64-bit word at `offset` of the thread's `struct user` (unsigned)."""
    ctypes.set_errno(0)
    value = raw(PTRACE_PEEKUSER, tid, offset, None)
    if value == -1 and ctypes.get_errno():
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace(PEEKUSER, {tid}): {os.strerror(code)}")
    return value & 0xFFFF_FFFF_FFFF_FFFF


def poke_user(tid: int, offset: int, value: int) -> None:
    """Set the 64-bit word at `offset` of the thread's `struct user`."""
    call(PTRACE_POKEUSER, tid, offset, value)


def get_regset(tid: int, kind: int, buffer: ctypes.Array[ctypes.c_char] | ctypes.Structure) -> int:
    """Fill `buffer` with register set `kind` (an NT_* note type); returns the bytes filled."""
    vector = IoVec(ctypes.addressof(buffer), ctypes.sizeof(buffer))
    call(PTRACE_GETREGSET, tid, kind, ctypes.addressof(vector))
    return int(vector.length)


def has_regset(tid: int, kind: int) -> bool:
    """Whether a stopped thread has register set `kind` now: the kernel refuses one of what is switched
    off (ENODEV), or unknown to it."""
    words = (ctypes.c_uint64 * 8)()
    vector = IoVec(ctypes.addressof(words), ctypes.sizeof(words))
    return raw(PTRACE_GETREGSET, tid, kind, ctypes.addressof(vector)) != -1


def set_regset(tid: int, kind: int, buffer: ctypes.Array[ctypes.c_char] | ctypes.Structure) -> None:
    """Set register set `kind` from `buffer`."""
    vector = IoVec(ctypes.addressof(buffer), ctypes.sizeof(buffer))
    call(PTRACE_SETREGSET, tid, kind, ctypes.addressof(vector))


def get_registers(tid: int, structure: type[ctypes.Structure]) -> Any:
    """The general registers, laid out as the ISA's `structure`."""
    registers = structure()
    get_regset(tid, NT_PRSTATUS, registers)
    return registers


def set_registers(tid: int, registers: ctypes.Structure) -> None:
    """Set the general registers."""
    set_regset(tid, NT_PRSTATUS, registers)


def event_message(tid: int) -> int:
    """The message of the ptrace event the thread stopped with (a tid, an exit status)."""
    message = ctypes.c_ulong()
    call(PTRACE_GETEVENTMSG, tid, 0, ctypes.addressof(message))
    return message.value


def signal_info(tid: int) -> SignalInfo | None:
    """The siginfo of the thread's stop; None in a group-stop, which has none."""
    info = SignalInfo()
    try:
        call(PTRACE_GETSIGINFO, tid, 0, ctypes.addressof(info))
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
    return info


def set_signal_info(tid: int, info: SignalInfo) -> None:
    """Set the siginfo that the signal about to be delivered comes with."""
    call(PTRACE_SETSIGINFO, tid, 0, ctypes.addressof(info))


def signal_mask(tid: int) -> int:
    """The signals that the thread blocks: bit n - 1 for signal n."""
    mask = ctypes.c_uint64()
    call(PTRACE_GETSIGMASK, tid, ctypes.sizeof(mask), ctypes.addressof(mask))
    return mask.value


def set_signal_mask(tid: int, blocked: int) -> None:
    """Set the signals that the thread blocks (SIGKILL and SIGSTOP cannot be)."""
    mask = ctypes.c_uint64(blocked)
    call(PTRACE_SETSIGMASK, tid, ctypes.sizeof(mask), ctypes.addressof(mask))


def unblock(tid: int, number: int) -> None:
    """Take signal `number` out of the thread's signal mask."""
    mask = signal_mask(tid)
    bit = 1 << (number - 1)
    if mask & bit:
        set_signal_mask(tid, mask & ~bit)


def program_counter_reader(
    user_offset: int | None, structure: type[ctypes.Structure], field: str
) -> Callable[[int], int]:
    """A function from tid to program counter, the cheapest one the machine has.

    With `user_offset` (the register's place in `struct user`) one PEEKUSER;
    where the kernel has no such request (AArch64), a GETREGSET into a buffer
    kept for the purpose. The function returns -1 when that fails, with an errno
    (ctypes.get_errno), which is 0 where -1 was read: ptrace(2), return value.
    """
    if user_offset is not None:
        # Closing over the C function with its arguments bound saves a Python frame per stop.
        def peek(
            tid: int, request: int = PTRACE_PEEKUSER, offset: int = user_offset, ptrace: object = lean
        ) -> int:
            return ptrace(request, tid, offset, None)  # type: ignore[operator, no-any-return]

        return peek
    # The set up to the program counter, in a buffer of words, and the vector that leads to it.
    index = getattr(structure, field).offset // 8
    words = (ctypes.c_uint64 * (index + 1))()
    vector = IoVec(ctypes.addressof(words), ctypes.sizeof(words))
    registers = memoryview(words).cast("B").cast("Q")
    where = ctypes.c_void_p(ctypes.addressof(vector))

    def read(tid: int, kept: object = vector) -> int:  # the kernel reads and writes the vector
        return -1 if lean(PTRACE_GETREGSET, tid, NT_PRSTATUS, where) == -1 else registers[index]

    return read


def program_counter_writer(
    user_offset: int | None, structure: type[ctypes.Structure], field: str
) -> Callable[[int, int], int]:
    """A function that sets the program counter of a tid, for the reader's two kinds of machines.

    It returns -1, as `raw` does, when that has failed.
    """
    if user_offset is not None:

        def poke(tid: int, value: int, offset: int = user_offset) -> int:
            return raw(PTRACE_POKEUSER, tid, offset, value)

        return poke
    index = getattr(structure, field).offset // 8
    words = (ctypes.c_uint64 * (index + 1))()
    vector = IoVec(ctypes.addressof(words), ctypes.sizeof(words))
    registers = memoryview(words).cast("B").cast("Q")
    where = ctypes.c_void_p(ctypes.addressof(vector))

    def write(tid: int, value: int, kept: object = vector) -> int:
        if lean(PTRACE_GETREGSET, tid, NT_PRSTATUS, where) == -1:
            return -1
        registers[index] = value
        return lean(PTRACE_SETREGSET, tid, NT_PRSTATUS, where)

    return write
