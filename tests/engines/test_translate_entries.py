"""What writes entries of a filtered stream: interrupted anywhere, the tracer brings it to the same end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import capstone
import pytest
import unicorn
from unicorn import x86_const as names

from livepro.engines.stream.filtering import ENTRY, NO_LINE, Lines
from livepro.engines.translate import layout
from livepro.engines.translate.translator.x86_64.events.entries import CLEAR, WORD, Entries
from livepro.engines.translate.translator.x86_64.rollforward import roll_forward

CODE, AREA, RETURN = 0x10000, 0x10000000, 0x11000
CHUNK = layout.RECORDS_END - 0x10000
LINES = Lines(64, 8)
HEAD, VALUE, RAX, RCX = 0x1_0000_0007, 0x7FFF_1234_5678, 0x1111, 0x2222


class Area:
    """A thread's area in the processor's memory, by words."""

    def __init__(self, uc: Any) -> None:
        self._uc = uc

    def __getitem__(self, at: int) -> int:
        return int.from_bytes(self._uc.mem_read(AREA + 8 * at, 8), "little")

    def __setitem__(self, at: int | slice, value: int) -> None:
        for one in range(at.start, at.stop, at.step or 1) if isinstance(at, slice) else (at,):
            self._uc.mem_write(AREA + 8 * one, int(value).to_bytes(8, "little"))


def begun(entries: Entries, how: int) -> tuple[Any, Area]:
    """A processor about to write an entry."""
    uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    uc.mem_map(CODE, 0x2000)
    uc.mem_map(AREA, layout.AREA_SIZE)
    uc.mem_write(CODE, entries.code)
    uc.mem_write(RETURN, b"\xf4")  # hlt
    uc.reg_write(names.UC_X86_REG_GS_BASE, AREA)
    uc.reg_write(names.UC_X86_REG_RAX, RAX)
    uc.reg_write(names.UC_X86_REG_RCX, RCX)
    area = Area(uc)
    for where, value in (
        *((layout.RECORD, CHUNK), (layout.ENTRY, HEAD), (layout.ENTRY_VALUE, VALUE)),
        *((layout.ENTRY_RETURN, RETURN), (layout.RECORDERS[0], CODE)),
        (layout.ENTRY_LINES, LINES.line | LINES.slots << 32),
    ):
        area[where // 8] = value
    return uc, area


def end(area: Area, rax: int, rcx: int, rip: int) -> tuple[int, ...]:
    slots = [area[(layout.DATA_LINES + slot * LINES.line) // 8] for slot in range(LINES.slots)]
    return rax, rcx, rip, area[layout.RECORD // 8], area[CHUNK // 8], area[CHUNK // 8 + 1], *slots


@pytest.mark.parametrize("how", [WORD, CLEAR])
def test_an_entry_is_written_wherever_it_is_interrupted(how: int) -> None:
    entries = Entries(LINES)
    start = entries.starts[how]
    stop = entries.starts[how + 1] if how + 1 < len(entries.starts) else entries.size
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    offsets = [one.address for one in decoder.disasm(entries.code[start:stop], start)]
    assert len(offsets) > 10
    filled = [NO_LINE if how == CLEAR else 0] * LINES.slots
    expected = (RAX, RCX, RETURN, CHUNK + 8 * ENTRY, HEAD, VALUE, *filled)
    reached = 0
    for offset in [*offsets, None]:
        uc, area = begun(entries, how)
        uc.emu_start(CODE + start, RETURN if offset is None else CODE + offset, count=1000)
        registers = SimpleNamespace(
            rip=uc.reg_read(names.UC_X86_REG_RIP),
            rax=uc.reg_read(names.UC_X86_REG_RAX),
            rcx=uc.reg_read(names.UC_X86_REG_RCX),
        )
        if offset is not None:
            if registers.rip != CODE + offset:
                continue  # the way past a stop does not lead here
            reached += 1
            assert roll_forward(registers, area, AREA, lambda at, size: bytes(size))
        assert end(area, registers.rax, registers.rcx, registers.rip) == expected
    assert reached >= len(offsets) - 1  # but for the stop


def test_half_a_word_is_written() -> None:
    """mov dword gs:[0x11c], 5: the upper half of a word of the area"""
    code = bytes.fromhex("65c704251c01000005000000")
    words = {layout.REFILL // 8: 0, layout.RECORDERS[0] // 8: 0, 0x118 // 8: 0x7_0000_0003}
    registers = SimpleNamespace(rip=CODE)
    assert roll_forward(registers, words, AREA, lambda at, size: code[at - CODE :].ljust(size, b"\x90"))
    assert (registers.rip, words[0x118 // 8]) == (CODE + len(code), 0x5_0000_0003)
