"""What simulates a thread's caches: as LRU is defined, whatever it is interrupted by."""

from __future__ import annotations

import mmap
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import unicorn
from unicorn import x86_const as names

from livepro.engines.stream.filtering import (
    ENTRY,
    FIRST_MISSED,
    LAST_MISSED,
    NO_LINE,
    ORDER,
    PLACE_SHIFT,
    TAG_SHIFT,
    Lines,
)
from livepro.engines.translate import layout
from livepro.engines.translate.translator.x86_64.events.entries import ACCESS, CLEAR, FULL, WORD, Entries
from livepro.engines.translate.translator.x86_64.rollforward import roll_forward
from livepro.isa.access import ALL_64

CODE, AREA, RETURN = 0x10000, 0x10000000, 0x11F00
CHUNK = layout.RECORDS_END - 0x10000
HEAD, VALUE, TAG = 0x1_0000_0007, 0x7FFF_1234_5678, 0x1234
NAMES = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "rsp", "rip", "eflags")
SHAPES = [
    Lines(64, 8, 2),
    Lines(64, 4, 3),
    Lines(64, 16, 12),
    Lines(128, 2, 1),
    Lines(128, 4, 20),
    Lines(64, 64, 8),
]


class Machine:
    """A processor with an area, and code that simulates caches."""

    def __init__(self, lines: Lines) -> None:
        self.lines, self.entries = lines, Entries(lines)
        self.uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        self.uc.mem_map(CODE, 0x4000)
        self.uc.mem_write(CODE, self.entries.code)
        assert self.entries.size < RETURN - CODE
        self.uc.mem_write(RETURN, b"\xf4")  # hlt
        self.uc.reg_write(names.UC_X86_REG_GS_BASE, AREA)
        self.words = np.frombuffer(mmap.mmap(-1, layout.AREA_SIZE), np.uint64)
        self.uc.mem_map_ptr(AREA, layout.AREA_SIZE, unicorn.UC_PROT_ALL, self.words.ctypes.data)
        self.words[layout.ENTRY_CACHE // 8] = lines.packed
        self.words[layout.RECORDERS[0] // 8] = CODE + self.entries.starts[0]
        self.begin()

    def begin(self) -> None:
        """Nothing is in its caches, nor written."""
        self.words[layout.RECORD // 8] = CHUNK
        self.entries.empty(self.words)

    def rows(self) -> Any:
        at = layout.DATA_LINES // 8
        return self.words[at : at + self.lines.words]

    def registers(self) -> SimpleNamespace:
        return SimpleNamespace(
            **{name: self.uc.reg_read(getattr(names, f"UC_X86_REG_{name.upper()}")) for name in NAMES}
        )

    def call(self, how: int, value: int, size: int, head: int = HEAD, steps: int = 20_000) -> bool:
        """Have it done, or so many instructions of it; whether that was not all."""
        words = self.words
        for where, number in (
            *((layout.ENTRY, head), (layout.ENTRY_VALUE, value), (layout.ENTRY_SPAN, size - 1)),
            *((layout.ENTRY_TAG, TAG), (layout.ENTRY_RETURN, RETURN)),
        ):
            words[where // 8] = number
        for n, name in enumerate(NAMES[:7]):
            self.uc.reg_write(getattr(names, f"UC_X86_REG_{name.upper()}"), 0x1111 * (n + 1))
        self.uc.reg_write(names.UC_X86_REG_RSP, AREA + layout.ENTRY_RETURN)
        self.uc.reg_write(names.UC_X86_REG_EFLAGS, 0x8D7 if how in (WORD, CLEAR) else 2)
        self.uc.emu_start(CODE + self.entries.starts[how], RETURN, count=steps)
        return bool(self.uc.reg_read(names.UC_X86_REG_RIP) != RETURN)

    def goes_on(self, registers: SimpleNamespace) -> None:
        """Let it go on from these registers to where it returns."""
        for name in NAMES:
            self.uc.reg_write(getattr(names, f"UC_X86_REG_{name.upper()}"), getattr(registers, name))
        self.uc.emu_start(registers.rip, RETURN, count=20_000)

    def written(self) -> list[int]:
        end = int(self.words[layout.RECORD // 8]) // 8
        return self.words[CHUNK // 8 : end].tolist()

    def sets(self) -> list[list[int]]:
        """The lines of each set, from the one used last."""
        lines, rows = self.lines, self.rows().tolist()
        out = []
        for index in range(lines.sets):
            ways = [rows[(index * lines.line + lines.offset(way)) // 8] for way in range(lines.ways)]
            out.append([-way % (1 << 64) // lines.line for way in ways if way != NO_LINE])
        return out


def kept(registers: SimpleNamespace) -> bool:
    """Whether all registers are as they were before, but for flags that are dead."""
    return [getattr(registers, name) for name in NAMES[:7]] == [0x1111 * (n + 1) for n in range(7)]


@pytest.mark.parametrize("lines", SHAPES)
def test_a_thread_simulates_lru(lines: Lines) -> None:
    """Each access of drawn ones, in one line or two, and what takes it back."""
    machine, random = Machine(lines), np.random.default_rng(lines.ways)
    parts = slice(layout.DATA_LINES // 8, layout.ENTRY_RETURN // 8)
    twin: list[list[int]] = [[] for _ in range(lines.sets)]
    for _ in range(1500):
        before, log = machine.words[parts].copy(), int(machine.words[layout.ENTRY_LOG // 8])
        size = int(random.integers(1, 17))
        address = int(random.integers(lines.line, 3 * lines.sets * lines.ways * lines.line // 2))
        machine.call(ACCESS, address, size)
        assert kept(machine.registers())
        first, last = address // lines.line, (address + size - 1) // lines.line
        missed = 0
        for line in dict.fromkeys((first, last)):
            ways = twin[line % lines.sets]
            if line in ways:
                ways.remove(line)
            else:
                missed |= LAST_MISSED if line == last else FIRST_MISSED
            twin[line % lines.sets] = [line, *ways][: lines.ways]
        assert machine.sets() == twin
        expected = [HEAD | missed << PLACE_SHIFT, address | TAG << TAG_SHIFT] if missed else []
        assert machine.written() == expected
        machine.words[layout.RECORD // 8] = CHUNK
        after = machine.words[parts].copy()
        at = int(machine.words[layout.ENTRY_LOG // 8])
        while at != log:
            at = (at - layout.LOGGED) % layout.LOG_SIZE
            head, tag, where, line = machine.words[(layout.LOG + at) // 8 :][:4].tolist()
            assert (head, tag) == (HEAD, TAG)
            machine.entries.put_back(machine.words, where, line)
        rows = (layout.LOG - layout.DATA_LINES) // 8
        assert machine.words[parts][:rows].tolist() == before[:rows].tolist()
        machine.words[parts] = after


@pytest.mark.parametrize("how", [ACCESS, WORD, CLEAR])
def test_it_begins_anew_wherever_its_caches_are_emptied(how: int) -> None:
    """It is where it was before, and does on empty caches what it does on these."""
    machine, reached = Machine(SHAPES[0]), 0
    for address in (0x1000, 0x1200, 0x103F, 0x2000):  # of sets that have lines, or not
        machine.begin()
        machine.call(how, address, 4)
        alone = machine.written(), machine.sets()
        for steps in range(1, 500):
            machine.begin()
            for line in (0x1200, 0x1000, 0x1040):
                machine.call(how if how != CLEAR else ACCESS, line, 1)
            machine.words[layout.RECORD // 8] = CHUNK
            if not machine.call(how, address, 4, steps=steps):
                break
            reached += 1
            registers = machine.registers()
            offset = registers.rip - CODE
            machine.entries.restart(registers, machine.words, offset)
            machine.begin()
            if offset - 1 in machine.entries.stops:  # of which the tracer may have yet to hear
                assert registers.rip == CODE + offset
                machine.goes_on(registers)
                assert kept(machine.registers())
                continue
            if how != CLEAR:
                assert registers.rip == CODE + machine.entries.starts[how]
                assert kept(registers)
            machine.goes_on(registers)
            assert kept(machine.registers())
            assert machine.sets() == alone[1]
            if how != CLEAR:
                assert machine.written() == alone[0] != []
    assert reached > 40


def test_lines_are_told_and_forgotten_wherever_it_is_interrupted() -> None:
    machine = Machine(SHAPES[0])
    carried = 0
    expected: tuple[Any, ...] = ()
    for steps in (20_000, *range(1, 1000)):
        machine.begin()
        for line in (0x1000, 0x1200, 0x1040, 0x2040):
            machine.call(ACCESS, line, 1)
        machine.words[layout.RECORD // 8] = CHUNK
        rows = machine.rows().tolist()
        if machine.call(CLEAR, VALUE, 1, steps=steps):
            registers = machine.registers()
            carried += roll_forward(registers, machine.words, AREA, lambda at, size: bytes(size))
            machine.goes_on(registers)
        elif expected:
            break
        registers = machine.registers()
        assert kept(registers)
        assert registers.eflags & 0x8D5 == 0x8D5
        found = (machine.written(), machine.sets(), int(machine.words[layout.ENTRY_ORDER // 8]))
        assert found[0] == [ORDER << PLACE_SHIFT, len(rows) | TAG << TAG_SHIFT, *rows]
        assert not any(found[1])
        expected = expected or found
        assert found == expected
    assert carried > 100


def test_a_word_is_written() -> None:
    machine = Machine(SHAPES[0])
    machine.call(WORD, VALUE, 1)
    registers = machine.registers()
    assert kept(registers)
    assert registers.eflags & 0x8D5 == 0x8D5
    assert machine.written() == [HEAD, VALUE]
    assert int(machine.words[layout.RECORD // 8]) == CHUNK + 8 * ENTRY


@pytest.mark.parametrize("lines", SHAPES)
def test_ways_have_their_places(lines: Lines) -> None:
    places = {(s * lines.line + lines.offset(way)) for s in range(lines.sets) for way in range(lines.ways)}
    assert len(places) == lines.sets * lines.ways
    assert max(places) < 8 * lines.words
    for s in range(lines.sets):
        for way in range(lines.ways):
            assert lines.way(s * lines.line + lines.offset(way)) == way
    assert Lines.unpacked(lines.packed) == lines


def test_a_full_chunk_stops() -> None:
    """And nothing else is done there, so that nothing need be begun anew."""
    machine = Machine(SHAPES[0])
    start = machine.entries.starts[FULL]
    assert machine.entries.stops[FULL] == start
    assert machine.entries.code[start : start + 2] == b"\xcc\xc3"  # int3; ret
    registers = SimpleNamespace(rip=CODE + start, rax=1)
    machine.entries.restart(registers, machine.words, start)
    assert vars(registers) == {"rip": CODE + start, "rax": 1}


def test_half_a_word_is_written() -> None:
    """mov dword gs:[0x11c], 5: the upper half of a word of the area"""
    code = bytes.fromhex("65c704251c01000005000000")
    words = {layout.REFILL // 8: 0, layout.RECORDERS[0] // 8: 0, 0x118 // 8: 0x7_0000_0003}
    registers = SimpleNamespace(rip=CODE)
    assert roll_forward(registers, words, AREA, lambda at, size: code[at - CODE :].ljust(size, b"\x90"))
    assert (registers.rip, words[0x118 // 8]) == (CODE + len(code), 0x5_0000_0003 & ALL_64)
