"""Writes to protected pages wait, whoever makes them, until the pages are given free."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections.abc import Iterator

import pytest

from livepro.isa import for_machine
from livepro.linux.userfault import WriteFaults, call_here

PAGE = mmap.PAGESIZE

library = ctypes.CDLL(None)


@pytest.fixture
def faults() -> Iterator[WriteFaults]:
    try:
        made = WriteFaults(os.getpid(), call_here, for_machine(os.uname().machine).syscalls.numbers)
    except OSError as error:
        pytest.skip(f"this kernel has no userfaultfd that protects: {error}")
    yield made
    made.close()


@pytest.fixture
def pages() -> Iterator[tuple[mmap.mmap, int]]:
    """Four pages in use, and their address."""
    memory = mmap.mmap(-1, 4 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = b"a" * (4 * PAGE)
    view = ctypes.c_char.from_buffer(memory)
    yield memory, ctypes.addressof(view)
    del view
    memory.close()


def in_background(function: object, *arguments: object) -> threading.Thread:
    """A thread that makes a call without holding the interpreter."""
    thread = threading.Thread(target=function, args=arguments, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_descriptors_are_given_back(faults: WriteFaults) -> None:
    before = len(os.listdir("/proc/self/fd"))
    again = WriteFaults(os.getpid(), call_here, for_machine(os.uname().machine).syscalls.numbers)
    again.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_store_waits(faults: WriteFaults, pages: tuple[mmap.mmap, int]) -> None:
    memory, start = pages
    faults.watch(start, start + 4 * PAGE)
    faults.protect(start + PAGE, start + 2 * PAGE)
    ctypes.memset(start, ord("b"), PAGE)  # not protected
    assert faults.wanted(0) == []
    writer = in_background(ctypes.memset, start + PAGE + 5, ord("c"), 1)
    assert faults.wanted(10) == [start + PAGE]
    assert memory[PAGE + 5] == ord("a")  # it can be read meanwhile
    assert writer.is_alive()
    faults.free(start + PAGE, start + 2 * PAGE)
    writer.join(10)
    assert memory[PAGE + 5] == ord("c")


def test_a_system_call_that_writes_waits(faults: WriteFaults, pages: tuple[mmap.mmap, int]) -> None:
    if not faults.whole:
        pytest.skip("needs CAP_SYS_PTRACE")
    memory, start = pages
    faults.watch(start, start + 4 * PAGE)
    faults.protect(start, start + PAGE)
    with open("/dev/zero", "rb") as zero:
        reader = in_background(library.read, zero.fileno(), ctypes.c_void_p(start + 8), ctypes.c_size_t(4))
        assert faults.wanted(10) == [start]
        faults.free(start, start + PAGE)
        reader.join(10)
    assert memory[8:13] == b"\0\0\0\0a"


def test_enough_ends_the_wait(faults: WriteFaults) -> None:
    waiter = in_background(faults.wanted, 60)
    faults.enough()
    waiter.join(10)
    assert not waiter.is_alive()


def test_closing_lets_writers_go_on(pages: tuple[mmap.mmap, int]) -> None:
    try:
        faults = WriteFaults(os.getpid(), call_here, for_machine(os.uname().machine).syscalls.numbers)
    except OSError as error:
        pytest.skip(f"this kernel has no userfaultfd that protects: {error}")
    memory, start = pages
    faults.watch(start, start + 4 * PAGE)
    faults.protect(start, start + 4 * PAGE)
    writer = in_background(ctypes.memset, start, ord("d"), 4 * PAGE)
    assert faults.wanted(10) == [start]
    faults.close()
    writer.join(10)
    assert memory[:] == b"d" * (4 * PAGE)


def test_file_mappings_cannot_be_watched(faults: WriteFaults) -> None:
    with open("/proc/self/exe", "rb") as file, mmap.mmap(file.fileno(), PAGE, mmap.MAP_PRIVATE) as memory:
        view = ctypes.c_char.from_buffer(memory)
        with pytest.raises(OSError, match="Invalid argument"):
            faults.watch(ctypes.addressof(view), ctypes.addressof(view) + PAGE)
        del view
