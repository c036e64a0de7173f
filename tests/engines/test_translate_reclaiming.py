"""Allowances that a thread takes back itself: what it makes of them, and what the tracer does when it
finds the thread there."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from livepro.engines.translate import layout
from livepro.engines.translate.allowances import FEW, IN_ALLOWANCES, LARGEST_CHUNK
from livepro.engines.translate.x86_64 import encode
from livepro.engines.translate.x86_64.reclaiming import RECLAIMING, Reclaiming
from livepro.isa import for_machine
from livepro.linux import ptrace

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 code is executed")

FIRST = 3
COUNTS = (-5, 0, -1, -300, 0, -7)
MORE = (9, 4, 1, 1000, 0, 7)
LENGTHS = (3, 10, 1, 20, 7, 2)
ASKING = 4
UNSPENT = 5 * 3 + 1 + 300 * 20 + 7 * 2
EACH = 3 + 1 + 20 + 2
OWN = {"rax": 0x0102_0304_0506_0708, "rbx": 11, "rdx": 1 << 63 | 5}

_READ_WRITE, _EXECUTE, _SHARED, _ANONYMOUS, _BELOW_2_GIB = 3, 4, 1, 0x20, 0x40
_ARCH_PRCTL, _SET_GS = 158, 0x1001  # arch/x86/include/uapi/asm/prctl.h


class Thread:
    """A process that executes the code, step by step, with an area of its own."""

    def __init__(self, supply: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p

        def shared(size: int) -> int:
            flags = _SHARED | _ANONYMOUS | _BELOW_2_GIB
            return int(libc.mmap(None, ctypes.c_size_t(size), _READ_WRITE | _EXECUTE, flags, -1, 0))

        self.area, data, self.code = shared(layout.AREA_SIZE), shared(layout.DATA_SIZE), shared(layout.PAGE)
        self.words = np.frombuffer(
            (ctypes.c_uint64 * (layout.AREA_SIZE // 8)).from_address(self.area), np.uint64
        )
        signed, cells = self.words.view(np.int64), slice(FIRST, FIRST + len(COUNTS))
        signed[layout.COUNTERS // 8 :][cells] = COUNTS
        signed[layout.MORE // 8 :][cells] = MORE
        signed[layout.SUPPLY // 8] = supply
        signed[layout.RECLAIM_ASKING // 8] = ASKING
        self.words[layout.RECLAIM // 8] = self.code
        numbers = np.frombuffer((ctypes.c_uint32 * (layout.DATA_SIZE // 4)).from_address(data), np.uint32)
        numbers[layout.LENGTHS // 4 :][cells] = LENGTHS
        numbers[layout.CELLS // 4 :][:2] = FIRST, FIRST + len(COUNTS)
        text = Reclaiming(data).code
        assert len(text) == len(RECLAIMING.code)
        self.back = self.code + len(text)
        begin = encode.INT3 + encode.move_absolute(encode.RCX, self.back)
        begin += b"".join(
            encode.move_absolute(number, OWN[name]) for number, name in ((0, "rax"), (2, "rdx"), (3, "rbx"))
        )
        start = len(text) + 1
        text += encode.INT3 + begin
        ctypes.memmove(self.code, text + encode.jump(-(len(text) + 5)), len(text) + 5)
        self.pid = os.fork()
        if not self.pid:
            self._execute(libc, self.code + start)

    def _execute(self, libc: Any, start: int) -> NoReturn:
        libc.syscall(_ARCH_PRCTL, _SET_GS, ctypes.c_void_p(self.area))
        libc.ptrace(0, 0, 0, 0)
        ctypes.CFUNCTYPE(None)(start)()
        os._exit(1)

    def steps(self) -> Iterator[Any]:
        """Its registers before each instruction of the code; the process ends with it."""
        structure = for_machine("x86_64").registers.structure
        try:
            while True:
                _, status = os.waitpid(self.pid, 0)
                assert os.WIFSTOPPED(status)
                assert os.WSTOPSIG(status) == signal.SIGTRAP
                registers = ptrace.get_registers(self.pid, structure)
                if registers.rip == self.back:
                    yield registers
                    return
                if registers.rip < self.back:
                    yield registers
                ptrace.call(ptrace.PTRACE_SINGLESTEP, self.pid)
        finally:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Copy:
    """Words as they would be with some changed."""

    def __init__(self, words: np.ndarray) -> None:
        self._words = words
        self._changed: dict[int, int] = {}

    def __getitem__(self, at: int) -> int:
        return self._changed.get(at, int(self._words[at]))

    def __setitem__(self, at: int, word: int) -> None:
        self._changed[at] = word


def content(words: Any) -> tuple[list[int], int]:
    """What has been counted by cell, and what is left."""
    cells = range(FIRST, FIRST + len(COUNTS))
    counts = [_signed(words[layout.COUNTERS // 8 + cell]) for cell in cells]
    more = [_signed(words[layout.MORE // 8 + cell]) for cell in cells]
    unspent = -sum(min(count, 0) * length for count, length in zip(counts, LENGTHS, strict=True))
    left = _signed(words[layout.BUDGET // 8]) + _signed(words[layout.SUPPLY // 8]) + unspent
    return [count + beside for count, beside in zip(counts, more, strict=True)], left


def _signed(word: int) -> int:
    return int(word) - (int(word) >> 63 << 64)


@pytest.mark.parametrize(
    ("supply", "budget", "rest", "chunk"),
    [
        (50, 50 + UNSPENT, 0, 0),
        (FEW - UNSPENT - 1, FEW - 1, 0, 0),
        (FEW - UNSPENT, 0, FEW, FEW // (IN_ALLOWANCES * (EACH + ASKING))),
        (50_000_000, 0, 50_000_000 + UNSPENT, LARGEST_CHUNK),
    ],
)
def test_what_is_not_used_is_given_out_anew(supply: int, budget: int, rest: int, chunk: int) -> None:
    """And from wherever the tracer has the thread go back, nothing that was counted or is left is lost,
    and it has its registers."""
    thread = Thread(supply)
    expected = content(thread.words)
    assert expected == ([each + more for each, more in zip(COUNTS, MORE, strict=True)], supply + UNSPENT)
    offsets = set()
    for registers in thread.steps():
        offset = registers.rip - thread.code
        if registers.rip == thread.back:
            break
        offsets.add(offset)
        words = Copy(thread.words)
        abandoned = SimpleNamespace(
            **{name: getattr(registers, name) for name in ("rax", "rbx", "rcx", "rdx", "rip")}
        )
        RECLAIMING.abandon(abandoned, words, offset)
        assert content(words) == expected, hex(offset)
        assert abandoned.rip == thread.back
        assert {name: getattr(abandoned, name) for name in OWN} == OWN, hex(offset)
    assert len(offsets) > 27  # all but one of two ways to end
    assert {name: getattr(registers, name) for name in OWN} == OWN
    assert content(thread.words) == expected
    words = thread.words.view(np.int64)
    assert [int(words[at // 8]) for at in (layout.BUDGET, layout.SUPPLY, layout.CHUNK)] == [
        budget,
        rest,
        chunk,
    ]
    assert not words[layout.COUNTERS // 8 :][FIRST : FIRST + len(COUNTS)].any()


def test_who_has_not_begun_goes_on_without_allowances() -> None:
    """Or the tracer, which carries out the block's code, would be led here again and again."""
    words = Copy(np.zeros(layout.COUNTERS // 8, np.uint64))
    words[layout.BUDGET // 8], words[layout.SUPPLY // 8] = 7, 30
    registers = SimpleNamespace(rip=0x5000, rcx=0x1234, rax=1, rbx=2, rdx=3)
    RECLAIMING.abandon(registers, words, 0)
    assert (words[layout.BUDGET // 8], words[layout.SUPPLY // 8]) == (37, 0)
    assert registers == SimpleNamespace(rip=0x1234, rcx=0x1234, rax=1, rbx=2, rdx=3)
