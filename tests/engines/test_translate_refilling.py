"""Allowances that a thread takes for a block, and takes back itself: what it makes of them, and what the
tracer does when it finds the thread there."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import capstone
import numpy as np
import pytest

from livepro.engines.translate import layout
from livepro.engines.translate.counting.allowances import EVENLY, FEW, LARGEST_CHUNK
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.refilling import REFILLING, Refilling
from livepro.isa import for_machine
from livepro.linux import ptrace

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 code is executed")

FIRST = layout.GROUP - 3  # so that they are in two groups
COUNTS = (-5, 0, -1, -300, 0, -7)
MORE = (9, 4, 1, 1000, 8, 7)
LENGTHS = (3, 10, 1, 20, 7, 2)
ASKING = 4
"""Which of them has no allowance left."""
UNSPENT = 5 * 3 + 1 + 300 * 20 + 7 * 2
EACH = 3 + 1 + 20 + 2 + LENGTHS[ASKING]
MUCH = 1 << 40
"""A portion that is more than there is."""
OWN = {"rax": 0x0102_0304_0506_0708, "rbx": 11, "rdx": 1 << 63 | 5}

_READ_WRITE, _EXECUTE, _SHARED, _ANONYMOUS, _BELOW_2_GIB = 3, 4, 1, 0x20, 0x40
_SIGN = 0x80  # SDM vol. 1, 3.4.3
_ARCH_PRCTL, _SET_GS = 158, 0x1001  # arch/x86/include/uapi/asm/prctl.h


class Thread:
    """A process that executes the code, step by step, with an area of its own. The block that asks has
    been `counted`, as its counter says, or not."""

    def __init__(
        self, supply: int, *, counted: bool, chunk: int = 50, portion: int = 0, rate: int = 0
    ) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p

        def shared(size: int) -> int:
            flags = _SHARED | _ANONYMOUS | _BELOW_2_GIB
            return int(libc.mmap(None, ctypes.c_size_t(size), _READ_WRITE | _EXECUTE, flags, -1, 0))

        sizes = layout.AREA_SIZE, layout.DATA_SIZE, layout.PAGE
        self.area, data, self.code = map(shared, sizes)
        self._mapped = list(zip((self.area, data, self.code), sizes, strict=True))
        self._munmap = libc.munmap
        self.words = np.frombuffer(
            (ctypes.c_uint64 * (layout.AREA_SIZE // 8)).from_address(self.area), np.uint64
        )
        signed, cells = self.words.view(np.int64), slice(FIRST, FIRST + len(COUNTS))
        signed[layout.COUNTERS // 8 :][cells] = COUNTS
        signed[layout.MORE // 8 :][cells] = MORE
        signed[layout.COUNTERS // 8 + FIRST + ASKING] = counted
        signed[layout.SUPPLY // 8] = supply
        signed[[layout.CHUNK // 8, layout.PORTION // 8, layout.RATE // 8]] = chunk, portion, rate
        self.words.view(np.uint8)[layout.TOUCHED : layout.TOUCHED + 2] = 1
        self.words[layout.REFILL // 8] = self.code
        numbers = np.frombuffer((ctypes.c_uint32 * (layout.DATA_SIZE // 4)).from_address(data), np.uint32)
        numbers[layout.LENGTHS // 4 :][cells] = LENGTHS
        numbers[layout.CELLS // 4 :][:2] = 0, 2
        text = Refilling(data).code
        assert len(text) == len(REFILLING.code)
        self.back = self.code + len(text)
        self.words[layout.REFILL_RETURN // 8] = self.back
        begin = encode.INT3 + encode.move_ecx(FIRST + ASKING)
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

    def _unmap(self) -> None:
        """There is not much room below 2 GiB. (What is looked at afterwards has been copied.)"""
        self.words = self.words.copy()
        for address, size in self._mapped:
            self._munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))

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
            self._unmap()


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


def read(address: int, size: int) -> bytes:
    """Of the memory that is shared."""
    return ctypes.string_at(address, size)


def _signed(word: int) -> int:
    return int(word) - (int(word) >> 63 << 64)


CASES: list[tuple[int, int, int, dict[str, int]]] = [
    # There is enough: 50 executions, and half as many as there were.
    (1000, 0, 1 << layout.PORTION_SHIFT - 1, {"more": 54, "supply": 1000 - 54 * 7}),
    # There is none, or too little with what others have left; then the thread stops, or not.
    (0, 0, 0, {"more": 1, "budget": -7}),
    (50, 0, 0, {"more": 1, "budget": 50 + UNSPENT - 7, "ended": 1}),
    (FEW - UNSPENT - 1, 0, MUCH, {"more": 1, "budget": FEW - 1 - 7, "ended": 1}),
    # What others have left is enough.
    (
        FEW - UNSPENT,
        7 << layout.RATE_SHIFT,
        MUCH,
        {"chunk": FEW // (EVENLY * EACH), "portion": FEW * 7, "each": EACH},
    ),
    (50_000_000, 0, MUCH, {"chunk": LARGEST_CHUNK, "portion": 0, "each": EACH}),
]


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(("supply", "rate", "portion", "expected"), CASES)
def test_a_block_that_asks_is_counted(
    supply: int, rate: int, portion: int, expected: dict[str, int], counted: bool
) -> None:
    """And from wherever the tracer has the thread go on, nothing that was counted or is left is lost,
    and it has its registers."""
    thread = Thread(supply, counted=counted, portion=portion, rate=rate)
    (counts, left), length = content(thread.words), LENGTHS[ASKING]
    counts[ASKING] += not counted
    goal = counts, left - length
    for registers in thread.steps():
        offset = registers.rip - thread.code
        if registers.rip == thread.back:
            break
        words = Copy(thread.words)
        names = ("rax", "rbx", "rcx", "rdx", "rip", "eflags")
        finished = SimpleNamespace(**{name: getattr(registers, name) for name in names})
        REFILLING.finish(finished, words, offset, read)
        assert content(words) == goal, hex(offset)
        assert finished.rip == thread.back
        assert {name: getattr(finished, name) for name in OWN} == OWN, hex(offset)
        assert _signed(words[layout.COUNTERS // 8 + FIRST + ASKING]) <= 0, hex(offset)
        stops = bool(finished.eflags & _SIGN)
        assert stops == (_signed(words[layout.BUDGET // 8]) < 0), hex(offset)
    assert {name: getattr(registers, name) for name in OWN} == OWN
    assert content(thread.words) == goal
    assert bool(registers.eflags & _SIGN) == (expected.get("budget", 0) < 0)
    words = thread.words.view(np.int64)
    found = {
        "more": int(words[layout.MORE // 8 + FIRST + ASKING]) - MORE[ASKING],
        "budget": int(words[layout.BUDGET // 8]),
        "supply": int(words[layout.SUPPLY // 8]),
        "chunk": int(words[layout.CHUNK // 8]),
        "portion": int(words[layout.PORTION // 8]),
        "ended": int(words[layout.REFILL_ENDED // 8]),
        "each": int(words[layout.REFILL_EACH // 8]),
    }
    if "chunk" in expected:
        taken = expected["chunk"]
        expected = {**expected, "more": taken, "supply": supply + UNSPENT - taken * length}
    same = {"budget": 0, "supply": 0, "chunk": 50, "portion": portion, "ended": 0, "each": 0}
    assert found == {**same, **expected}
    if "chunk" in expected or "ended" in expected:
        others = [int(words[layout.COUNTERS // 8 + FIRST + n]) for n in range(len(COUNTS)) if n != ASKING]
        assert not any(others)
    assert thread.words.view(np.uint8)[layout.TOUCHED + 1] == 1


def test_no_instruction_is_left_out_above() -> None:
    """As another disassembler tells them apart."""
    met: set[int] = set()
    for supply, rate, portion, _ in CASES:
        thread = Thread(supply, counted=True, portion=portion, rate=rate)
        met.update(registers.rip - thread.code for registers in thread.steps())
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    instructions = {at for at, *_ in disassembler.disasm_lite(REFILLING.code, 0)}
    assert met == instructions | {len(REFILLING.code)}


def test_groups_that_have_not_been_touched_are_not_looked_through() -> None:
    thread = Thread(0, counted=True)
    thread.words.view(np.uint8)[layout.TOUCHED] = 0
    thread.words[layout.SUPPLY // 8] = 1
    for _ in thread.steps():
        pass
    held = thread.words.view(np.int64)[layout.COUNTERS // 8 + FIRST :][: len(COUNTS)].tolist()
    assert held == [*COUNTS[:3], 0, 0, 0]


def test_the_group_of_a_block_that_asks_is_touched() -> None:
    """By the thread as by the tracer."""
    thread = Thread(1000, counted=True)
    touched = thread.words.view(np.uint8)
    touched[layout.TOUCHED : layout.TOUCHED + 2] = 0
    for registers in thread.steps():
        if registers.rip == thread.code:
            words = Copy(thread.words)
            REFILLING.finish(registers, words, 0, read)
            assert words[layout.TOUCHED // 8] == 1 << 8 * ((FIRST + ASKING) // layout.GROUP)
    assert thread.words.view(np.uint8)[layout.TOUCHED :][:2].tolist() == [0, 1]
