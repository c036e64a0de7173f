"""AArch64 control flow carried out in the tracer: words from the GNU assembler, effects from
the Arm ARM (C6.2, the instructions; C1.2.4, the conditions)."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from isa.aarch64_tools import assemble

from livepro.isa import for_machine
from livepro.isa.aarch64.registers import Registers

AT = 0x400000
N, Z, C, V = (1 << bit for bit in (31, 30, 29, 28))

CONDITIONS = {
    "eq": lambda n, z, c, v: z,
    "ne": lambda n, z, c, v: not z,
    "cs": lambda n, z, c, v: c,
    "cc": lambda n, z, c, v: not c,
    "mi": lambda n, z, c, v: n,
    "pl": lambda n, z, c, v: not n,
    "vs": lambda n, z, c, v: v,
    "vc": lambda n, z, c, v: not v,
    "hi": lambda n, z, c, v: c and not z,
    "ls": lambda n, z, c, v: not c or z,
    "ge": lambda n, z, c, v: n == v,
    "lt": lambda n, z, c, v: n != v,
    "gt": lambda n, z, c, v: not z and n == v,
    "le": lambda n, z, c, v: z or n != v,
    "al": lambda n, z, c, v: True,
    "nv": lambda n, z, c, v: True,
}


class NoMemory:
    """A64 branches touch none."""

    def read(self, address: int) -> int:
        raise AssertionError(address)

    def write(self, address: int, value: int) -> bool:
        raise AssertionError(address)


def carried(line: str, directory: Path, **values: int) -> Registers | None:
    """The registers after the instruction at AT, None if it is left to the processor."""
    code = assemble([line], directory)[0].to_bytes(4, "little")
    carry = for_machine("aarch64").terminator(code, AT)
    assert carry is not None
    registers = Registers(pc=AT, **values)
    return registers if carry(memoryview(registers).cast("B").cast("Q"), NoMemory()) else None


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditional_branches(name: str, tmp_path: Path) -> None:
    code = assemble([f"b.{name} . - 64"], tmp_path)[0].to_bytes(4, "little")
    carry = for_machine("aarch64").terminator(code, AT)
    assert carry is not None
    for n, z, c, v in product((False, True), repeat=4):
        registers = Registers(pc=AT, pstate=n * N | z * Z | c * C | v * V)
        assert carry(memoryview(registers).cast("B").cast("Q"), NoMemory())
        assert registers.pc == (AT - 64 if CONDITIONS[name](n, z, c, v) else AT + 4)


@pytest.mark.parametrize(
    ("line", "value", "taken"),
    [
        ("cbz x7, . + 32", 0, True),
        ("cbz x7, . + 32", 1 << 32, False),
        ("cbz w7, . + 32", 1 << 32, True),
        ("cbnz x7, . + 32", 1 << 32, True),
        ("cbnz w7, . + 32", 1 << 32, False),
        ("cbz xzr, . + 32", 5, True),
        ("cbnz wzr, . + 32", 5, False),
        ("tbz x7, #40, . + 32", 1 << 40, False),
        ("tbz x7, #40, . + 32", 1 << 8, True),
        ("tbnz x7, #40, . + 32", 1 << 40, True),
        ("tbnz w7, #8, . + 32", 1 << 8, True),
        ("tbz xzr, #3, . + 32", 8, True),
        ("tbnz xzr, #3, . + 32", 8, False),
    ],
)
def test_tests_of_a_register(line: str, value: int, taken: bool, tmp_path: Path) -> None:
    after = carried(line, tmp_path, x7=value)
    assert after is not None
    assert (after.pc, after.x7) == (AT + (32 if taken else 4), value)


@pytest.mark.parametrize(
    ("line", "pc", "link"),
    [
        ("b . + 4096", AT + 4096, 0x55),
        ("b . - 4", AT - 4, 0x55),
        ("bl . - 4096", AT - 4096, AT + 4),
        ("br x9", 0x123400, 0x55),
        ("blr x9", 0x123400, AT + 4),
        ("blr x30", 0x55, AT + 4),
        ("ret", 0x55, 0x55),
        ("ret x9", 0x123400, 0x55),
    ],
)
def test_unconditional_branches(line: str, pc: int, link: int, tmp_path: Path) -> None:
    after = carried(line, tmp_path, x9=0x123400, x30=0x55)
    assert after is not None
    assert (after.pc, after.x30) == (pc, link)


def test_a_target_that_is_no_user_address_is_left_to_the_processor(tmp_path: Path) -> None:
    assert carried("blr x9", tmp_path, x9=1 << 60) is None


@pytest.mark.parametrize("line", ["retaa", "braaz x3", "blraa x3, x4", "brk #1", "svc #0", "nop", "udf #0"])
def test_what_only_the_processor_can_do(line: str, tmp_path: Path) -> None:
    code = assemble([line], tmp_path)[0].to_bytes(4, "little")
    assert for_machine("aarch64").terminator(code, AT) is None
