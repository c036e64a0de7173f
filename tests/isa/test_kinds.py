"""Kinds of instruction: numbered, and the same after they were kept."""

from __future__ import annotations

from fake_runs import ADD, ADDPS, MOVSB

from livepro.isa import for_machine
from livepro.isa.kinds import Kinds, dump, parse, restore


def test_instructions_come_back_as_they_were() -> None:
    assert [restore(row) for row in parse(dump([ADD, ADDPS, MOVSB]))] == [ADD, ADDPS, MOVSB]


def test_encodings_that_differ_in_operands_are_of_one_kind() -> None:
    machine = for_machine("x86_64")
    kinds = Kinds(machine.describe)
    add_rax_rbx, add_rcx_rdx, add_to_memory = b"\x48\x01\xd8", b"\x48\x01\xd1", b"\x48\x01\x18"
    assert kinds.split(add_rax_rbx + add_rcx_rdx + add_to_memory + add_rax_rbx, b"\3\3\3\3") == [0, 0, 1, 0]
    assert [i.code for i in kinds.instructions] == [add_rax_rbx, add_to_memory]
