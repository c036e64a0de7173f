"""The accesses of x86-64 instructions, against an emulator that makes them (unicorn), on real code."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

unicorn = pytest.importorskip("unicorn")
iced = pytest.importorskip("iced_x86")

from livepro.isa.access import READ, WRITE, pieces  # noqa: E402
from livepro.isa.x86_64.accesses import accesses, words_after, words_before  # noqa: E402
from livepro.isa.x86_64.registers import Registers  # noqa: E402

_CODE, _DATA, _SIZE = 0x10_0000, 0x20_0000, 0x40_0000
_NAMES = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))


class Machine:
    """Registers as `MachineState`."""

    def __init__(self, general: Registers) -> None:
        self.general = general

    def vectors(self) -> bytes:
        return bytes(4096)

    def read(self, address: int, size: int) -> bytes:
        return bytes(size)


def emulated(code: bytes, general: Registers, address: int) -> tuple[set[tuple[int, int]], Registers] | None:
    """The (kind, byte address) that the instruction touches and the registers behind it; None where
    the emulator cannot execute it."""
    from unicorn import (
        UC_ARCH_X86,
        UC_HOOK_MEM_READ,
        UC_HOOK_MEM_WRITE,
        UC_MEM_WRITE,
        UC_MODE_64,
        Uc,
        UcError,
        x86_const,
    )

    machine = Uc(UC_ARCH_X86, UC_MODE_64)
    machine.mem_map(_CODE, 0x1000)
    machine.mem_map(_DATA, _SIZE)
    machine.mem_map(0, 0x1000)
    machine.mem_write(address, code)
    numbers = {name: getattr(x86_const, f"UC_X86_REG_{name.upper()}") for name in _NAMES}
    for name, number in numbers.items():
        machine.reg_write(number, getattr(general, name))
    machine.reg_write(x86_const.UC_X86_REG_EFLAGS, general.eflags)
    seen: set[tuple[int, int]] = set()

    def hook(_: Any, kind: int, at: int, size: int, value: int, data: Any) -> None:
        seen.update(((WRITE if kind == UC_MEM_WRITE else READ), at + n) for n in range(size))

    machine.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, hook)
    try:
        machine.emu_start(address, address + len(code), count=1 if code[0] not in (0xF2, 0xF3) else 0)
    except UcError:
        return None
    after = Registers()
    for name, number in numbers.items():
        setattr(after, name, machine.reg_read(number))
    return seen, after


def instructions() -> list[bytes]:
    """One encoding of each shape (code and operand kinds) in libc's text, but what needs AVX."""
    library = next(iter(Path("/lib/x86_64-linux-gnu").glob("libc.so.6")), None)
    if library is None:
        pytest.skip("there is no libc.so.6 where Debian has it (libc6)")
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as stream:
        text = ELFFile(stream).get_section_by_name(".text").data()
    found: dict[Any, bytes] = {}
    for instruction in iced.Decoder(64, text, ip=_CODE):
        kinds = tuple(instruction.op_kind(n) for n in range(instruction.op_count))
        key = instruction.code, kinds, instruction.memory_base != 0, instruction.memory_index != 0
        if instruction.code == 0 or instruction.encoding not in (0,) or instruction.segment_prefix:
            continue
        at = instruction.ip - _CODE
        found.setdefault(key, text[at : at + instruction.len])
    return list(found.values())


_UNLIKE = re.compile(
    "syscall|int|hlt|rd|xsave|xrstor|cpuid|x(begin|end|test|abort)|in[sb]|out|f(n)?(save|rstor|ldenv|stenv)"
)


def test_real_code_touches_what_an_emulator_touches() -> None:
    generator = random.Random(23)
    tried = skipped = 0
    for code in instructions():
        text = str(iced.Decoder(64, code, ip=_CODE).decode())
        if _UNLIKE.match(text):
            continue
        general = Registers()
        for name in _NAMES:
            setattr(general, name, _DATA + _SIZE // 2 + generator.randrange(64) * 16)
        general.rcx = generator.randrange(4)
        general.eflags = 2
        found = accesses(code, _CODE)
        if any("[" in part and ("rcx" in part or "rip" in part) for part in text.split(",")):
            general.rcx = _DATA + _SIZE // 2
        if any(access.where.base == iced.Register.RIP for access in found):
            continue
        for access in found:  # a great index would leave the memory
            if access.where.scaled:
                field = iced_name(access.where.scaled)
                setattr(
                    general,
                    field,
                    generator.randrange(16) if field != iced_name(access.where.base) else _DATA // 8,
                )
        answer = emulated(code, general, _CODE)
        if answer is None:
            skipped += 1
            continue
        seen, after = answer
        machine = Machine(general)
        words: list[int] = []
        for access in found:
            words += words_after(access, words_before(access, machine), after)
        own = {(kind, address + n) for kind, address, size in pieces(found, words) for n in range(size)}
        tried += 1
        assert own == seen, (text, code.hex())
    assert tried > 500, (tried, skipped)


def iced_name(register: int) -> str:
    full = iced.RegisterExt.full_register(register)
    return next((name for name in _NAMES if getattr(iced.Register, name.upper()) == full), "")
