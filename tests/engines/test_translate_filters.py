"""What filters do to what is fetched: as the processor (unicorn) executes it, wherever it is interrupted."""

from __future__ import annotations

import mmap
from types import SimpleNamespace

import capstone
import numpy as np
import pytest
import unicorn
from unicorn import x86_const as names

from livepro import isa
from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.stream.filtering import (
    FETCH,
    PAGE,
    PLACE_SHIFT,
    SPAN_SHIFT,
    TAG_SHIFT,
    WITHIN_SHIFT,
    Filter,
    Lines,
)
from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Check, Countdown
from livepro.engines.translate.translator.x86_64.emitter import Emitter
from livepro.engines.translate.translator.x86_64.events.addressing import lea
from livepro.engines.translate.translator.x86_64.source import Reader, Text

PC = 0x7FFF_1000_0FFD
BLOCK = bytes.fromhex("48 b8 8877665544332211 90 c3")  # movabs rax, imm64, in two pages; nop; ret
CODE, COLD, AREA, CHUNK = 0x10000, 0x14000, 0x1000_0000, layout.RECORDS_END - 0x10000
SLOT, COUNT = 3, 0x1_0041
SAVED = {"rcx": 0x1111, "rdx": 0x2222}


class Machine:
    """A processor that is about to fetch the block's first instruction."""

    def __init__(self) -> None:
        emitter = Emitter(0x7000_0000, {}, Countdown.NONE)
        blocks = StreamBlocks(isa.for_machine("x86_64"))
        emitter.record(blocks, Filter(Lines(64, 64, 8), Lines(64, 64, 8)))
        block = Reader().decode(Text(PC, BLOCK), PC)
        self.emitted = emitted = emitter.emit(block, CODE, SLOT, lambda b: 0, Check.NEVER)
        self.entries, self.cold = emitter.entries, emitted.cold
        assert self.entries is not None
        assert self.cold is not None
        code, cold = bytearray(emitted.code), bytearray(self.cold.code)
        for enter, begin in self.cold.enters:
            code[enter : enter + 4] = (COLD + begin - (CODE + enter + 4)).to_bytes(4, "little", signed=True)
        for field, back in self.cold.backs:
            cold[field : field + 4] = (CODE + back - (COLD + field + 4)).to_bytes(4, "little", signed=True)
        self.uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        self.uc.mem_map(CODE, 0x8000)
        self.uc.mem_write(CODE, bytes(code))
        self.uc.mem_write(COLD, bytes(cold))
        self.uc.reg_write(names.UC_X86_REG_GS_BASE, AREA)
        self.words = np.frombuffer(mmap.mmap(-1, layout.AREA_SIZE), np.uint64)
        self.uc.mem_map_ptr(AREA, layout.AREA_SIZE, unicorn.UC_PROT_ALL, self.words.ctypes.data)
        self.end = CODE + emitted.marks(block)[0]
        self.begin()

    @property
    def pages(self) -> list[int]:
        at = layout.CODE_LINES // 8
        rows: list[int] = self.words[at : at + layout.CODE_LINES_SIZE // 8].view(np.uint32).tolist()
        return rows

    def begin(self) -> None:
        """No line is known, and the chunk is empty."""
        at = layout.CODE_LINES // 8
        self.words[at : at + layout.CODE_LINES_SIZE // 8] = 0
        self.words[layout.RECORD // 8] = CHUNK
        self.words[layout.COUNTERS // 8 + SLOT] = COUNT

    def run(self, begin: int = CODE, steps: int = 10_000) -> bool:
        """Execute to where the instruction begins, or so many instructions; whether that was not all."""
        self.uc.emu_start(begin, self.end, count=steps)
        return bool(self.uc.reg_read(names.UC_X86_REG_RIP) != self.end)

    def written(self) -> list[int]:
        end = int(self.words[layout.RECORD // 8]) // 8
        found: list[int] = self.words[CHUNK // 8 : end].tolist()
        return found

    def set(self, **registers: int) -> None:
        for name, value in registers.items():
            self.uc.reg_write(getattr(names, f"UC_X86_REG_{name.upper()}"), value)

    def get(self, *wanted: str) -> dict[str, int]:
        return {name: self.uc.reg_read(getattr(names, f"UC_X86_REG_{name.upper()}")) for name in wanted}


EXPECTED = [
    FETCH << PLACE_SHIFT,  # instruction 0 of block 0
    PC // PAGE & 0xFFFFFFFF
    | PC % PAGE << WITHIN_SHIFT
    | 9 << SPAN_SHIFT
    | COUNT + 1 << TAG_SHIFT & (1 << 64) - 1,
]
"""Page 0x7fff10000, 0xffd bytes in it; 10 bytes; before it is counted."""


def test_a_fetch_is_told_if_its_line_was_not_the_last_one() -> None:
    """It is in two lines, of pages 0x7fff10000 and 0x7fff10001, whose sets are the last and the first."""
    machine = Machine()
    machine.set(**SAVED)
    assert not machine.run()
    assert machine.written() == EXPECTED
    assert machine.get(*SAVED) == SAVED
    assert (machine.pages[63], machine.pages[0]) == (0xFFF1_0000, 0xFFF1_0001)
    assert sum(map(bool, machine.pages)) == 2
    machine.run()
    assert machine.written() == EXPECTED  # and not again


@pytest.mark.parametrize("known", [0, 63])
def test_one_line_of_two(known: int) -> None:
    machine = Machine()
    machine.run()
    pages = machine.pages
    machine.begin()
    machine.words[layout.CODE_LINES // 8 + known // 2] = pages[known] << known % 2 * 32
    machine.run()
    assert machine.written() == EXPECTED
    assert machine.pages == pages


def test_it_is_written_anew_wherever_the_stream_is_divided() -> None:
    """Once, and with the program's registers, whatever was written by then."""
    machine = Machine()
    assert machine.cold is not None
    assert machine.entries is not None
    ((begin, end),) = machine.cold.writes
    anew = 0
    for steps in range(1, 100):
        machine.begin()
        machine.set(**SAVED)
        if not machine.run(steps=steps):
            break
        registers = SimpleNamespace(**machine.get("rip", *SAVED))
        offset = registers.rip - COLD
        if begin < offset < end:
            machine.entries.begin_anew(registers, machine.words, offset - begin)
            assert vars(registers) == {"rip": COLD + begin} | SAVED
            machine.begin()
            machine.set(**vars(registers))
            anew += 1
        machine.run(registers.rip)
        assert machine.written() == EXPECTED
        assert machine.get(*SAVED) == SAVED
        assert (machine.pages[63], machine.pages[0]) == (0xFFF1_0000, 0xFFF1_0001)
    assert anew == 13  # instructions from the second one on, to the one that has it written


@pytest.mark.parametrize("base", [-1, 0, 4, 5, 12, 13])
@pytest.mark.parametrize("scaled", [-1, 0, 5, 8, 13])
@pytest.mark.parametrize("displacement", [0, 1, -128, 127, 128, -129, 0x7FFFFFFF])
def test_addresses_are_computed_as_they_should(base: int, scaled: int, displacement: int) -> None:
    if base < 0 and scaled < 0:
        return
    registers = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))
    code = lea(9, base, scaled, 4, displacement)
    machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    machine.detail = True
    (found,) = machine.disasm(code, 0)
    assert found.mnemonic == "lea"
    assert (found.size, found.reg_name(found.operands[0].reg)) == (len(code), "r9")
    place = found.operands[1].mem
    assert found.reg_name(place.base) == (registers[base] if base >= 0 else None)
    index = found.reg_name(place.index)
    assert index == (registers[scaled] if scaled >= 0 else None) or (scaled < 0 and index in ("riz", None))
    assert place.scale == (4 if scaled >= 0 else 1)
    assert place.disp == displacement
