"""What instructions are, kept from run to run."""

from __future__ import annotations

from pathlib import Path

from livepro.described import LIMIT, Descriptions
from livepro.isa import for_machine
from livepro.model import Instruction

ADD, MOV = b"\x48\x01\xd8", b"\x48\x89\xd8"


def test_what_was_described_once_is_known_to_the_next_run(tmp_path: Path) -> None:
    machine = for_machine("x86_64")
    asked: list[bytes] = []

    def describe(code: bytes) -> Instruction:
        asked.append(code)
        return machine.describe(code)

    expected = [machine.describe(ADD), machine.describe(MOV)]
    for known, program in enumerate((("a",), ("a",), ("b",))):
        asked.clear()
        descriptions = Descriptions(describe, program, tmp_path)
        assert [descriptions(ADD), descriptions(MOV)] == expected
        descriptions.keep()
        assert asked == ([] if known == 1 else [ADD, MOV])


def test_generated_code_does_not_fill_the_disk(tmp_path: Path) -> None:
    machine = for_machine("x86_64")
    descriptions = Descriptions(machine.describe, ("a",), tmp_path)
    for number in range(LIMIT + 1):
        descriptions(b"\xb8" + number.to_bytes(4, "little"))  # mov eax, number
    descriptions.keep()
    assert not list(tmp_path.iterdir())


def test_without_a_directory_nothing_is_kept() -> None:
    descriptions = Descriptions(for_machine("x86_64").describe, (), None)
    assert descriptions(ADD).code == ADD
    descriptions.keep()
