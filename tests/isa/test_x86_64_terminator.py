"""Terminators carried out in the tracer against the processor itself.

A child holds three pages (code, data, stack). For each case both are asked: the
closure works on a copy of the registers and the child's memory, then the child
is single-stepped over the same instruction from the same registers.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from livepro.isa import for_machine
from livepro.isa.x86_64.registers import Registers
from livepro.isa.x86_64.terminator import terminator
from livepro.linux import ptrace
from livepro.linux.proc import Memory
from livepro.linux.vm import Words
from livepro.linux.wait import TRAP_STATUS, WALL

PAGE = 4096
FLAGS = (0x1, 0x4, 0x40, 0x80, 0x800)  # CF PF ZF SF OF
ALIGNMENT_CHECK = 0x40000
RANDOM_OPERANDS = 1500


@dataclass
class Bench:
    """A stopped child and its pages: what stands at `code` is executed."""

    pid: int
    code: int
    data: int
    stack: int

    def __post_init__(self) -> None:
        self.memory = Memory(self.pid)
        self.words = Words(self.pid)
        self.clean = ptrace.get_registers(self.pid, Registers)
        self.clean.orig_rax = (1 << 64) - 1  # no system call to restart

    def registers(self, **values: int) -> Registers:
        """The child's registers with some of their own, pc and stack pointer set."""
        out = Registers.from_buffer_copy(self.clean)
        out.rip, out.rsp = self.code, self.stack + PAGE // 2
        for name, value in values.items():
            setattr(out, name, value)
        return out

    def natively(self, before: Registers) -> tuple[bool, list[int]]:
        """Whether the processor executed the instruction, and the registers behind it."""
        ptrace.set_registers(self.pid, before)
        for name in ("fs_base", "gs_base"):
            ptrace.poke_user(self.pid, getattr(Registers, name).offset, getattr(before, name))
        ptrace.call(ptrace.PTRACE_SINGLESTEP, self.pid)
        _, status = os.waitpid(self.pid, WALL)
        after = ptrace.get_registers(self.pid, Registers)
        return status == TRAP_STATUS, words_of(after)

    def check(self, code: bytes, before: Registers) -> bool:
        """Compare; returns whether the instruction was carried out (else both must refuse)."""
        self.memory.write(self.code, code)
        self.memory.write(self.stack, bytes(PAGE))
        carry = terminator(code, self.code)
        assert carry is not None
        ours = Registers.from_buffer_copy(before)
        carried = carry(memoryview(ours).cast("B").cast("Q"), self.words)
        our_stack = self.memory.read(self.stack, PAGE)
        self.memory.write(self.stack, bytes(PAGE))
        executed, theirs = self.natively(before)
        if carried:
            assert executed
            assert words_of(ours) == theirs
            assert our_stack == self.memory.read(self.stack, PAGE)
        else:
            assert words_of(ours) == words_of(before)
        return carried


def words_of(registers: Registers) -> list[int]:
    """All registers but the flags that only the processor's single step touches."""
    out = list(memoryview(registers).cast("B").cast("Q"))
    out[Registers.eflags.offset // 8] &= ~0x10100  # RF, TF
    out[Registers.orig_rax.offset // 8] = 0
    return out


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    pages = mmap.mmap(-1, 8 * PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    pid = os.fork()
    if pid == 0:
        # Page 5 may be read only, page 6 nothing; the stack is page 3.
        library.mprotect(start + 5 * PAGE, PAGE, 1)
        library.mprotect(start + 6 * PAGE, PAGE, 0)
        while True:
            signal.pause()
    ptrace.call(ptrace.PTRACE_SEIZE, pid, 0, ptrace.PTRACE_O_EXITKILL)
    # Once it waits in pause, its pages are as they shall be.
    while True:
        with open(f"/proc/{pid}/syscall") as file:
            if file.read().split()[0] == "34":
                break
    ptrace.call(ptrace.PTRACE_INTERRUPT, pid)
    os.waitpid(pid, WALL)
    yield Bench(pid, start + PAGE, start + 2 * PAGE, start + 3 * PAGE)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, WALL)


def flag_sets() -> list[int]:
    return [sum(chosen) | 0x202 for chosen in product(*((0, flag) for flag in FLAGS))]


@pytest.mark.parametrize("condition", range(16))
def test_conditional_jumps(condition: int, bench: Bench) -> None:
    near = bytes((0x0F, 0x80 | condition)) + (-300).to_bytes(4, "little", signed=True)
    short = bytes((0x70 | condition, 0x40))
    for flags in flag_sets():
        assert bench.check(near, bench.registers(eflags=flags))
        assert bench.check(short, bench.registers(eflags=flags))


@pytest.mark.parametrize("opcode", [0xE0, 0xE1, 0xE2, 0xE3])
@pytest.mark.parametrize("prefix", [b"", b"\x67"])
@pytest.mark.parametrize("count", [0, 1, 2, 1 << 32, (1 << 32) + 1, (1 << 64) - 1])
def test_loops_and_count_tests(opcode: int, prefix: bytes, count: int, bench: Bench) -> None:
    for flags in (0x202, 0x242):
        assert bench.check(prefix + bytes((opcode, 0xF0)), bench.registers(rcx=count, eflags=flags))


@pytest.mark.parametrize("code", ["eb05", "e900010000", "e8000100 00", "e8f0ffffff", "4ee800000000"])
def test_direct_jumps_and_calls(code: str, bench: Bench) -> None:
    assert bench.check(bytes.fromhex(code), bench.registers())


@pytest.mark.parametrize("code", ["c3", "f3c3", "f2c3", "c20000", "c21000", "c2ffff", "48c3"])
def test_returns(code: str, bench: Bench) -> None:
    before = bench.registers()
    before.rsp = bench.data  # `check` clears the stack page
    bench.memory.write(bench.data, (bench.code + 64).to_bytes(8, "little"))
    assert bench.check(bytes.fromhex(code), before)


def test_indirect_branches_with_every_kind_of_operand(bench: Bench) -> None:
    """Random ModRM, SIB and displacement under random prefixes, registers that mostly make
    the address fall into the data page."""
    rng = random.Random(1)
    names = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", *(f"r{n}" for n in range(8, 16)))
    bench.memory.write(bench.data, (bench.code + 128).to_bytes(8, "little") * (PAGE // 8))
    carried = tried = 0
    while tried < RANDOM_OPERANDS:
        prefixes = rng.choice((b"", b"", b"\x64", b"\x65", b"\x3e", b"\xf2", b"\xf3", b"\x66\x48"))
        rex = b"" if prefixes.endswith(b"\x48") else rng.choice((b"", bytes((rng.randrange(0x40, 0x50),))))
        modrm = rng.choice((0x10, 0x20)) | rng.choice((0x00, 0x40, 0x80, 0xC0)) | rng.randrange(8)
        tail = bytes((rng.randrange(256),)) if modrm & 7 == 4 and modrm < 0xC0 else b""
        code = prefixes + rex + b"\xff" + bytes((modrm,)) + tail
        far = modrm < 0x40 and (modrm & 7 == 5 or (modrm & 7 == 4 and tail[0] & 7 == 5))
        if modrm >= 0x80 or far:
            code += rng.randrange(0, 256, 8).to_bytes(4, "little") if modrm < 0xC0 else b""
        elif modrm >= 0x40:
            code += rng.randrange(0, 120, 8).to_bytes(1, "little")
        if far and modrm & 7 == 5:  # pc-relative: into the data page
            code = code[:-4] + (bench.data - bench.code).to_bytes(4, "little")
        values = {name: rng.choice((bench.data + 1024, 16, 256)) for name in names}
        if modrm >= 0xC0:
            values = {name: bench.code + 8 * n for n, name in enumerate(names)}
        based = rng.random() < 0.5
        values |= {"fs_base": 64 if based else bench.data, "gs_base": 128}
        if terminator(code, bench.code) is None:
            continue
        tried += 1
        carried += bench.check(code, bench.registers(**values))
    assert carried > RANDOM_OPERANDS // 4


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("c3", {"rsp": 0x10}),  # nothing mapped
        ("c3", {"rsp": 1 << 63}),  # not canonical
        ("ffe0", {"rax": 1 << 63}),
        ("ffd0", {"rax": 1 << 47}),
        ("ffd0", {"rsp": 0x10}),  # the push
        ("e800000000", {"rsp": 0x10}),
        ("ff20", {"rax": 0x10}),
        ("ff10", {"rax": 0x10}),
    ],
)
def test_what_faults_is_left_to_the_processor(code: str, values: dict[str, int], bench: Bench) -> None:
    """Neither registers nor memory are touched, and the processor indeed faults."""
    before = bench.registers(**{"rax": bench.code, **values})
    assert not bench.check(bytes.fromhex(code), before)
    assert not bench.natively(before)[0]


def test_page_protection_is_obeyed(bench: Bench) -> None:
    """A push onto a page that may only be read, a return from one that may not be read."""
    onto, into = bench.registers(rax=bench.code), bench.registers()
    onto.rsp, into.rsp = bench.code + 4 * PAGE + 64, bench.code + 5 * PAGE
    for code, before in ((b"\xff\xd0", onto), (b"\xc3", into)):
        assert not bench.check(code, before)
        assert not bench.natively(before)[0]


@pytest.mark.parametrize("code", ["c3", "ffd0", "ff20", "e800000000"])
def test_alignment_is_checked_when_the_program_asks(code: str, bench: Bench) -> None:
    bench.memory.write(bench.data, (bench.code + 64).to_bytes(8, "little") * 4)
    before = bench.registers(rax=bench.data, rsp=bench.data + 9)
    bench.memory.write(bench.data + 9, (bench.code + 64).to_bytes(8, "little"))
    if code == "ff20":
        before.rax = bench.data + 9
    assert bench.check(bytes.fromhex(code), before)
    before.eflags |= ALIGNMENT_CHECK
    assert not bench.check(bytes.fromhex(code), before)
    assert not bench.natively(before)[0]


@pytest.mark.parametrize(
    "code",
    [
        *("cc", "cd80", "0f0b", "f4", "0f05", "c7f800000000", "90"),
        *("48cf", "cb", "48cb", "ff28", "ff18", "48ff28"),
        *("66c3", "66e90000", "66ffe0", "67ff20"),
    ],
)
def test_what_only_the_processor_can_do(code: str) -> None:
    """Traps, far transfers, transactions; operand sizes that processors disagree about; 32-bit addresses."""
    assert terminator(bytes.fromhex(code) + bytes(4), 0x401000) is None


def test_the_instruction_set_offers_it() -> None:
    machine = for_machine("x86_64")
    assert machine.terminator(b"\xc3", 0) is not None
    assert (machine.breakpoint.code, machine.breakpoint.pc_advance) == (b"\xcc", 1)
