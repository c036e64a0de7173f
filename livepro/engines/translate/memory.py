"""The memory that livepro shares with a process, and calls made inside it to set that up."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.errors import LiveproError
from livepro.linux import ptrace, vm
from livepro.linux.proc import AddressSpace, Memory, address_space
from livepro.linux.wait import stop_event, stop_signal
from livepro.tracee.descriptors import room_for_another
from livepro.tracee.stops import next_stop, sent

_MFD_CLOEXEC = 1  # include/uapi/linux/memfd.h
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4  # include/uapi/asm-generic/mman-common.h
_MAP_SHARED, _MAP_FIXED, _MAP_FIXED_NOREPLACE, _MAP_NORESERVE = 0x01, 0x10, 0x100000, 0x4000
_MAP_PRIVATE, _MAP_ANONYMOUS = 0x02, 0x20

BELOW_RED_ZONE = 1024
"""Bytes below the stack pointer that no program uses."""

_MIDDLE = 0x2000_0000_0000  # a quarter of the 47-bit user address space

# Blocked in a thread that makes a call for livepro: all signals but those that the kernel
# forces upon a thread, which would end it.
HELD_OFF = (1 << 64) - 1 & ~sum(
    1 << number - 1
    for number in (
        signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS
    )
)  # fmt: skip

NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""Errors that say that a process can take no more memory of livepro's: for descriptors, or addresses."""

_NAME = b"livepro\0"
_TO_THREAD = -6  # SI_TKILL: include/uapi/asm-generic/siginfo.h
_ERRORS = (1 << 64) - 4095  # system calls return -errno


OWN_FILES = "/memfd:livepro"
"""How the path of a mapping of livepro's begins, and of a descriptor."""


def run_to_trap(request: int, tid: int, traps: list[ptrace.SignalInfo]) -> bool:
    """Have a thread that livepro makes call something run, by a ptrace `request`, until it traps; returns
    whether it was told to stop meanwhile, by somebody who waits for that. Its signals are held off.

    Those that cannot be are blocked when they come, and let through: each goes back into the queue, with
    all it carries (ptrace_signal in kernel/signal.c). With SIGTRAP blocked, the trap would have the kernel
    forget its handler: those that somebody sends are added to `traps`, to be sent again once the thread has
    its own mask. SIGSTOP cannot even be blocked: it stops the process, and the thread runs on all the same.
    """
    interrupted, passed = False, 0
    while True:
        ptrace.call(request, tid, 0, passed)
        status = next_stop(tid)
        passed = 0
        if stop_event(status):
            interrupted |= stop_event(status) == ptrace.PTRACE_EVENT_STOP
            continue
        number = stop_signal(status)
        if number == signal.SIGTRAP:
            info = ptrace.signal_info(tid)
            if info is None or not sent(tid):
                return interrupted
            traps.append(info)
            continue
        if number != signal.SIGSTOP:
            ptrace.set_signal_mask(tid, ptrace.signal_mask(tid) | 1 << number - 1)
        passed = number


def send_again(tgkill: int, pid: int, tid: int, traps: list[ptrace.SignalInfo]) -> None:
    """Send each SIGTRAP again that `run_to_trap` has kept from thread `tid` of process `pid`: to whom it was
    sent. `tgkill` is the number of that system call. Raises OSError."""
    for info in traps:
        with contextlib.suppress(ProcessLookupError):
            if info.code == _TO_THREAD:
                vm.send(tgkill, pid, tid, signal.SIGTRAP)
            else:
                os.kill(pid, signal.SIGTRAP)


def check_result(result: int, number: int, tid: int) -> int:
    """The result of system call `number`. Raises OSError if it says that the call failed."""
    if result >= _ERRORS:
        code = (1 << 64) - result
        raise OSError(code, f"system call {number} inside {tid}: {os.strerror(code)}")
    return result


class Calls(Protocol):
    """Makes system calls inside a process."""

    @property
    def tid(self) -> int:
        """The thread."""

    def call(self, number: int, *arguments: int) -> int:
        """Make one; returns its result. Raises OSError on failure."""


def _resize(descriptor: int, size: int) -> None:
    """Make a memfd `size` bytes long, past livepro's own limit on file sizes if it may.
    Raises LiveproError if it may not."""
    try:
        os.ftruncate(descriptor, size)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (OSError, ValueError):
            raise LiveproError(
                f"The limit on file sizes ({hard} bytes) forbids the memory that livepro shares "
                "with the program.",
                "Raise it (`ulimit -f unlimited`), or use `--engine block`.",
            ) from None
        try:
            os.ftruncate(descriptor, size)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class SharedFile:
    """A memfd mapped whole on livepro's side and at `base` in the target.

    `map` is livepro's view. The target makes the memfd, not livepro, so that
    nothing need be opened by path from inside (containers, chroots), and
    closes it once it is mapped: the program's descriptors stay what they were.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.map = mmap.mmap(descriptor, size)
        self.size = size
        self.base = 0
        self._inode = os.fstat(descriptor).st_ino

    def mapped_in(self, tid: int) -> bool:
        """Whether it is mapped at its base in the memory of thread `tid`."""
        with contextlib.suppress(OSError):
            mapping = address_space(tid).find(self.base)
            return mapping is not None and mapping.shared and mapping.inode == self._inode
        return False


class Sharing:
    """Creates shared files in one target, through calls made inside it.

    `scratch` is writable memory of the target's, used for a moment; 0 has a page
    mapped for the purpose.
    """

    def __init__(self, calls: Calls, memory: Memory, numbers: Mapping[str, int], scratch: int) -> None:
        self._calls = calls
        self._memory = memory
        self._numbers = numbers
        self._scratch = scratch

    def _make_file(self) -> int:
        """A memfd in the target; returns its descriptor there."""
        call, numbers, at = self._calls.call, self._numbers, self._scratch
        if not at:
            flags = _MAP_PRIVATE | _MAP_ANONYMOUS
            at = call(numbers["mmap"], 0, layout.PAGE, _PROT_READ | _PROT_WRITE, flags, -1, 0)
        try:
            kept = self._memory.read(at, len(_NAME))
            self._memory.write(at, _NAME)
            try:
                return self._memfd(at)
            finally:
                self._memory.write(at, kept)
        finally:
            if not self._scratch:
                call(numbers["munmap"], at, layout.PAGE)

    def _memfd(self, name: int) -> int:
        """The same, with a name that is there already."""
        number = self._numbers["memfd_create"]
        try:
            return self._calls.call(number, name, _MFD_CLOEXEC)
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            try:
                with room_for_another(self._calls.tid):
                    return self._calls.call(number, name, _MFD_CLOEXEC)
            except PermissionError:
                raise error from None

    def create(
        self,
        size: int,
        address: int,
        *,
        executable: bool,
        copy: tuple[SharedFile, list[tuple[int, int]]] | None = None,
    ) -> SharedFile:
        """A new file of `size` bytes, mapped at `address` (0: where the kernel likes).

        Code is executable and read-only in the target, data is writable.
        `copy` (a file, and the ranges of it that matter) makes it a copy that
        takes the place of what is at `address`. Raises OSError when the
        target's kernel refuses.
        """
        call, numbers = self._calls.call, self._numbers
        there = self._make_file()
        try:
            here = os.open(f"/proc/{self._calls.tid}/fd/{there}", os.O_RDWR | os.O_CLOEXEC)
            try:
                _resize(here, size)
                file = SharedFile(here, size)
            finally:
                os.close(here)
            if copy is not None:
                # Filled before it is mapped: the gadget in use may lie in it.
                original, ranges = copy
                for start, end in ranges:
                    file.map[start:end] = original.map[start:end]
            flags = _MAP_SHARED | _MAP_NORESERVE
            if address:
                flags |= _MAP_FIXED_NOREPLACE if copy is None else _MAP_FIXED
            protection = _PROT_READ | (_PROT_EXEC if executable else _PROT_WRITE)
            file.base = call(numbers["mmap"], address, size, protection, flags, there, 0)
        finally:
            call(numbers["close"], there)
        return file


class ThreadAreas:
    """The data window and the thread areas of one address space; `users` areas have ever been in use."""

    def __init__(self, data: SharedFile, windows: list[SharedFile]) -> None:
        self.data = data
        self.windows = windows
        self.users = 0
        self._free: list[int] = []
        self._views: dict[int, npt.NDArray[np.uint64]] = {}
        self.told = np.frombuffer(data.map, np.int32)
        """The data window (int32, by 4 bytes), live: the process reads there how long blocks are."""
        self._lengths = self.told[layout.LENGTHS // 4 :][: layout.MAX_SLOTS]
        self._range = memoryview(data.map)[layout.CELLS : layout.CELLS + 8].cast("I")

    def note_lengths(
        self, cell: int, lengths: Sequence[int] | npt.NDArray[np.generic], used: tuple[int, int]
    ) -> None:
        """Let the process know how many instructions the blocks of the counters from `cell` on have, and
        which counters are in use: the first, and the first behind them."""
        self._lengths[cell : cell + len(lengths)] = lengths
        first, end = used[0] // layout.GROUP, -(-used[1] // layout.GROUP)
        # (Compiled code may have told of more that threads use already, and nobody has entered yet.)
        self._range[1] = end if first != self._range[0] else max(end, self._range[1])
        self._range[0] = first

    def used_data(self) -> list[tuple[int, int]]:
        """The ranges of the data window that hold anything, as (start, end) offsets."""
        first, end = (group * layout.GROUP for group in self._range)
        return [(0, layout.LENGTHS), (layout.LENGTHS + first * 4, layout.LENGTHS + end * 4)]

    def area(self, index: int) -> npt.NDArray[np.uint64]:
        """A thread's area as 64-bit words (uint64, AREA_SIZE / 8), live."""
        view = self._views.get(index)
        if view is None:
            window, place = divmod(index, layout.AREAS_PER_WINDOW)
            view = np.frombuffer(
                self.windows[window].map, np.uint64, layout.AREA_SIZE // 8, place * layout.AREA_SIZE
            )
            self._views[index] = view
        return view

    def area_address(self, index: int) -> int:
        """Where a thread's area is in the target."""
        window, place = divmod(index, layout.AREAS_PER_WINDOW)
        return self.windows[window].base + place * layout.AREA_SIZE

    @property
    def full(self) -> bool:
        """Whether all areas that the windows hold are in use."""
        return not self._free and self.users == len(self.windows) * layout.AREAS_PER_WINDOW

    def take(self) -> int:
        """The index of an area that is not in use, from now on in use."""
        if self._free:
            return self._free.pop()
        self.users += 1
        return self.users - 1

    def give_back(self, index: int) -> None:
        """An area is in use no longer."""
        self._free.append(index)

    def table(self) -> memoryview[int]:
        """The lookup table (65,536 unsigned 64-bit words), live."""
        return memoryview(self.data.map)[: layout.LOOKUP_ENTRIES * 8].cast("Q")


def free_below(space: AddressSpace, limit: int, size: int, lowest: int = 0x1_0000) -> int | None:
    """The highest free page-aligned range of `size` bytes that ends at or below `limit`."""
    end = limit & -layout.PAGE
    for mapping in reversed(space.mappings):
        if mapping.start >= end:
            continue
        if mapping.end + size <= end:
            break
        end = min(end, mapping.start)
    start = end - size
    return start if start >= lowest else None


def free_near(space: AddressSpace, pc: int, size: int) -> int | None:
    """A free range of `size` bytes within reach of `pc`, well away from where the
    kernel will place the program's next mappings; None if there is none."""
    for distance in (1 << 30, 3 << 28, 1 << 29, 1 << 28, 0):
        start = free_below(space, pc - distance, size)
        if start is not None and pc - start < layout.REACH:
            return start
    # Nothing below (a program at the bottom of the address space): above.
    for distance in (1 << 30, 3 << 28, 1 << 29):
        start = free_below(space, pc + distance + size, size)
        if start is not None and start > pc and start - pc < layout.REACH:
            return start
    return None


def data_address(space: AddressSpace) -> int:
    """A free place below 2 GiB for the data window. Raises LiveproError if there is none."""
    start = free_below(space, 0x7F00_0000, layout.DATA_SIZE + layout.DATA_ALIGNMENT)
    if start is None:
        raise LiveproError(
            "There is no room below 2 GiB in the program's address space.",
            "Use `--engine block` or `--engine step`.",
        )
    return (start + layout.DATA_ALIGNMENT - 1) & -layout.DATA_ALIGNMENT


def areas_address(space: AddressSpace) -> int:
    """A free place for the thread areas, far from where kernels put a program's own
    mappings. Raises LiveproError if there is none."""
    # With 39-bit addresses (AArch64 with three levels of tables) there is less.
    top = max((mapping.end for mapping in space.mappings if mapping.end < 1 << 56), default=0)
    start = free_below(space, min(_MIDDLE, top // 2), layout.AREAS_SIZE)
    if start is None:
        raise LiveproError(
            "There is no room for counters in the program's address space.",
            "Use `--engine block` or `--engine step`.",
        )
    return start
