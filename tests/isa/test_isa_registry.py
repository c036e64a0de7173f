"""What both instruction sets must offer under the same names."""

from __future__ import annotations

import pytest

from livepro import isa
from livepro.errors import LiveproError
from livepro.isa.vocabulary import vocabulary

MACHINES = {"x86_64": ("90", "ADD", "VADDPS"), "aarch64": ("1f2003d5", "ADD", "FADD")}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_by_its_name(machine: str) -> None:
    nop = bytes.fromhex(MACHINES[machine][0])
    found = isa.for_machine(machine)
    assert found.name == machine
    assert found.describe(nop).itypes == ("nop",)
    assert found.decode_block(nop, 0).truncated
    assert found.disassemble(nop, 0) == "nop"


@pytest.mark.parametrize("machine", MACHINES)
def test_names_that_specifications_may_use(machine: str) -> None:
    words = vocabulary(machine)
    assert set(MACHINES[machine][1:]) <= words.opcodes
    assert {"BINARY", "COND_BR", "CALL", "RET", "NOP"} <= words.categories


def test_unknown_machines() -> None:
    for ask in (isa.for_machine, vocabulary):
        with pytest.raises(LiveproError, match="riscv64"):
            ask("riscv64")
