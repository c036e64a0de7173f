"""What the tracer carries out instead of a thread, beside a processor (unicorn) that does the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import unicorn
from unicorn import x86_const as names

from livepro.engines.translate import layout
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.rollforward import roll_forward

CODE, AREA = 0x1000, 0x10_0000
WORD = layout.COUNTERS
STATUS = 0x8D5  # OF, SF, ZF, AF, PF, CF: SDM vol. 1, 3.4.3
SAVE_FLAGS = b"\x9f\x0f\x90\xc0"  # lahf; seto al: what a block does where flags live on
ALL_64 = (1 << 64) - 1

COUNTS = (0, 1, 2, 14, 15, 16, 127, 128, 254, 255, 256, 1 << 32, (1 << 63) - 1, 1 << 63, ALL_64 - 1, ALL_64)


def executed(code: bytes, count: int, flags: int) -> tuple[int, int, int]:
    """The word of the area, rax and the arithmetic flags behind `code`, by the processor."""
    uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    uc.mem_map(CODE, 0x1000)
    uc.mem_map(AREA, WORD + 0x2000 & -0x1000)
    uc.mem_write(CODE, code)
    uc.mem_write(AREA + WORD, count.to_bytes(8, "little"))
    uc.reg_write(names.UC_X86_REG_GS_BASE, AREA)
    uc.reg_write(names.UC_X86_REG_EFLAGS, flags | 2)
    uc.emu_start(CODE, CODE + len(code))
    word = int.from_bytes(uc.mem_read(AREA + WORD, 8), "little")
    return word, uc.reg_read(names.UC_X86_REG_RAX), uc.reg_read(names.UC_X86_REG_EFLAGS) & STATUS


def carried_out(code: bytes, count: int, flags: int) -> tuple[int, int, int]:
    """The same by the tracer."""
    registers = SimpleNamespace(rip=CODE, rax=0, rcx=0, eflags=flags | 2)
    words = {WORD // 8: count, layout.REFILL // 8: 0, layout.RECORDERS[0] // 8: 0}
    while registers.rip < CODE + len(code):
        assert roll_forward(registers, words, AREA, lambda at, size: code[at - CODE :].ljust(size, b"\x90"))
    return words[WORD // 8], registers.rax, registers.eflags & STATUS


@pytest.mark.parametrize("flags", [0, STATUS])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "instruction",
    [
        encode.increment_area(WORD),
        *(encode.subtract_area(WORD, amount) for amount in (1, 16, 127, 128, 4000)),
    ],
    ids=bytes.hex,
)
def test_counting_leaves_the_flags_of_the_processor(instruction: bytes, count: int, flags: int) -> None:
    """All of them, whether they are dead or not: what saves flags behind it saves the dead ones, too."""
    code = instruction + SAVE_FLAGS
    assert carried_out(code, count, flags) == executed(code, count, flags)


@pytest.mark.parametrize("code", ["488d6c2d00", "4f8d6c2d00", "4e8d6c2d00", "488d442d00", "4a8d442d00"])
def test_sums_of_registers(code: str) -> None:
    """lea rbp, [rbp + rbp]; lea r13, [r13 + r13]; lea r13, [rbp + r13]: one is not another, and what is not
    carried out is left to the processor."""
    data = bytes.fromhex(code)
    uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    uc.mem_map(CODE, 0x1000)
    uc.mem_write(CODE, data)
    all_names = ("rax", "rbp", "r13")
    numbers = [getattr(names, f"UC_X86_REG_{name.upper()}") for name in all_names]
    for n, number in enumerate(numbers):
        uc.reg_write(number, 1 << 8 * n)
    uc.emu_start(CODE, CODE + len(data))
    registers = SimpleNamespace(rip=CODE, eflags=2, rax=1, rbp=1 << 8, r13=1 << 16, rcx=0)
    words = {layout.REFILL // 8: 0, layout.RECORDERS[0] // 8: 0}
    if roll_forward(registers, words, AREA, lambda at, size: data[at - CODE :].ljust(size, b"\x90")):
        assert [getattr(registers, name) for name in all_names] == [uc.reg_read(n) for n in numbers]
    else:
        assert code not in ("488d6c2d00", "4f8d6c2d00")
