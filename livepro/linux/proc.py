"""What /proc says of a process: its maps, memory, threads and status."""

from __future__ import annotations

import errno
import os
import signal
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple


class Mapping(NamedTuple):
    """One line of /proc/PID/maps (addresses and file offset in bytes)."""

    start: int
    end: int
    readable: bool
    writable: bool
    executable: bool
    shared: bool
    offset: int
    inode: int
    path: str

    @property
    def file_backed(self) -> bool:
        """Whether its bytes are those of a file that nobody is expected to change.

        A memfd or a deleted file has an inode too, but is what JIT compilers
        map twice, once to write and once to execute.
        """
        return (
            bool(self.inode) and not self.path.startswith("/memfd:") and not self.path.endswith(" (deleted)")
        )

    @property
    def stable_code(self) -> bool:
        """Whether instructions read from here stay what they are until it is remapped."""
        if self.path in ("[vdso]", "[vsyscall]"):
            return True
        return self.executable and self.file_backed and not self.writable and not self.shared


class AddressSpace:
    """The mappings of a process at one moment, searchable by address."""

    def __init__(self, mappings: list[Mapping]) -> None:
        self.mappings = mappings
        self._starts = [m.start for m in mappings]

    def find(self, address: int) -> Mapping | None:
        """The mapping that holds `address`, None where nothing is mapped."""
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self.mappings[at].end:
            return self.mappings[at]
        return None

    def within(self, start: int, end: int) -> Iterator[Mapping]:
        """The mappings that have bytes in [start, end), in order."""
        at = max(bisect_right(self._starts, start) - 1, 0)
        for mapping in self.mappings[at:]:
            if mapping.start >= end:
                break
            if start < mapping.end:
                yield mapping

    def holds_code(self, start: int, end: int) -> bool:
        """Whether anything executable is mapped in [start, end)."""
        return any(mapping.executable for mapping in self.within(start, end))


def parse_maps(text: str) -> list[Mapping]:
    """The mappings of a maps file (format: Documentation/filesystems/proc.rst)."""
    mappings = []
    for line in text.splitlines():
        fields = line.split(maxsplit=5)
        start, _, end = fields[0].partition("-")
        permissions = fields[1]
        mappings.append(
            Mapping(
                start=int(start, 16),
                end=int(end, 16),
                readable=permissions[0] == "r",
                writable=permissions[1] == "w",
                executable=permissions[2] == "x",
                shared=permissions[3] == "s",
                offset=int(fields[2], 16),
                inode=int(fields[4]),
                path=fields[5] if len(fields) > 5 else "",
            )
        )
    return mappings


def address_space(pid: int) -> AddressSpace:
    """The mappings of process `pid`. Raises OSError when it is gone."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
        return AddressSpace(parse_maps(file.read()))


class Memory:
    """Reads and writes the memory of one process, whatever the page permissions.

    One descriptor on /proc/PID/mem: a write through it goes into a private
    copy of a read-only page, as a debugger's does. A process that has just ended has none: nothing
    is read of it, and writing says so.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._descriptor = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            self._descriptor = -1

    def read(self, address: int, size: int) -> bytes:
        """Up to `size` bytes from `address`; shorter (or empty) where the mapping ends."""
        try:
            return os.pread(self._descriptor, size, address)
        except (OSError, OverflowError):
            return b""

    def write(self, address: int, data: bytes) -> None:
        """Write `data` at `address`. Raises OSError where nothing is mapped, ProcessLookupError when
        the process has ended (then nothing is written, mem_rw in fs/proc/base.c)."""
        if self._descriptor < 0:
            raise ProcessLookupError(errno.ESRCH, "The process has ended")
        done = 0
        while done < len(data):
            written = os.pwrite(self._descriptor, data[done:], address + done)
            if not written:
                raise ProcessLookupError(errno.ESRCH, "The process has ended")
            done += written

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def status_field(tid: int, name: str) -> str:
    """A field of /proc/TID/status, e.g. "Tgid". Raises OSError when it is gone,
    KeyError when the kernel does not show such a field."""
    with open(f"/proc/{tid}/status", "rb", buffering=0) as file:
        text = b"\n" + file.read()
    key = f"\n{name}:\t".encode()
    at = text.find(key)
    if at < 0:
        raise KeyError(name)
    at += len(key)
    return text[at : text.index(b"\n", at)].decode(errors="surrogateescape").strip()


def parent(pid: int) -> int:
    """The pid of a process's parent, 0 when it is gone."""
    try:
        return int(status_field(pid, "PPid"))
    except (OSError, KeyError):
        return 0


def tracer(tid: int) -> int:
    """The thread that traces a thread, 0 if none does."""
    try:
        return int(status_field(tid, "TracerPid"))
    except (OSError, KeyError):
        return 0


TRACED = "t"
"""`thread_state` of a thread that its tracer has stopped."""


def thread_state(tid: int) -> str:
    """The state letter of a thread (proc_pid_stat(5)), "X" when it is gone."""
    try:
        with open(f"/proc/{tid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


_DYING = 0x404  # PF_EXITING, PF_SIGNALED: include/linux/sched.h


def dying(tid: int) -> bool:
    """Whether a thread is on its way to its end: killed, or exiting. Raises OSError if that cannot be
    told, as where no file can be opened any more."""
    try:
        with open(f"/proc/{tid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        pending = int(status_field(tid, "SigPnd"), 16) | int(status_field(tid, "ShdPnd"), 16)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return fields[0] in "ZX" or bool(int(fields[6]) & _DYING or pending >> signal.SIGKILL - 1 & 1)


class Sleep(NamedTuple):
    """A thread that waits inside a system call: its program counter there, behind the call's
    instruction, and how often it had been switched from (-1: it is gone)."""

    pc: int
    switches: int


def sleep(tid: int) -> Sleep | None:
    """Where a thread waits, None for one that may be running, or when that cannot be told."""
    switches = _switches(tid)
    pc = waits_at(tid)
    return None if pc is None or switches < 0 else Sleep(pc, switches)


def waits_at(tid: int) -> int | None:
    """The program counter of a thread that waits in the kernel: behind its system call's instruction
    if it is in one. None for one that may be running, or when that cannot be told."""
    try:
        with open(f"/proc/{tid}/syscall", "rb", buffering=0) as file:
            fields = file.read().split()
    except OSError:
        return None
    # "running", or a number and six arguments (-1 alone: in no call), the stack and program counters
    # (proc_pid_syscall in fs/proc/base.c).
    return int(fields[8], 16) if len(fields) == 9 else None


def slept_on(tid: int, sleep: Sleep) -> bool:
    """Whether a thread has executed nothing since it was found asleep. (One that has woken and not yet
    been switched from has as many switches as before.)"""
    asleep = waits_at(tid) is not None
    return _switches(tid) == sleep.switches and (asleep or sleep.switches < 0)


def _switches(tid: int) -> int:
    """Context switches of a thread so far, -1 when it is gone."""
    total, found = 0, False
    try:
        with open(f"/proc/{tid}/status", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                if "ctxt_switches:" in line:
                    total += int(line.rpartition(":")[2])
                    found = True
    except OSError:
        return -1
    return total if found else -1


def threads(pid: int) -> list[int]:
    """The threads of a process, the first one first. Raises ProcessLookupError when it is gone."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")), key=lambda tid: (tid != pid, tid))
    except FileNotFoundError:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH)) from None


def thread_name(tid: int) -> str:
    """The thread's name as the kernel keeps it, empty when it is gone."""
    try:
        with open(f"/proc/{tid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""


def command_line(pid: int) -> tuple[str, ...]:
    """The arguments of a process, empty when it is gone or a kernel thread."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            text = file.read()
    except OSError:
        return ()
    return tuple(os.fsdecode(part) for part in text.split(b"\0")[:-1])


def initial_environment() -> dict[bytes, bytes]:
    """The environment that livepro itself was started with, byte for byte.

    Not `os.environ`: CPython adds LC_CTYPE there when it coerces the C locale
    (PEP 538), and one more variable moves the stack of the program measured.
    """
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
