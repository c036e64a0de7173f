"""A block as the text of an assembler."""

from __future__ import annotations

from livepro import isa as registry
from livepro.blocks.rows import BlockRow, instructions

COMMENT = {"x86_64": "#", "aarch64": "//"}
"""What begins a comment, by instruction set (GNU as, "Machine Dependent Features")."""


class NoText(ValueError):
    """An instruction that no assembler's text is known for."""


def lines(row: BlockRow) -> list[str]:
    """One line for each instruction. Raises NoText."""
    isa = registry.for_machine(row.isa)
    out = []
    for address, code in instructions(isa, row.bytes, row.address):
        text = isa.assembly(code, address)
        if not text:
            raise NoText(f"no assembler text is known for the instruction {code.hex()}")
        out.append(f"\t{text}")
    return out


def title(row: BlockRow) -> str:
    """What a comment says of a block."""
    times = "" if row.occurrences is None else f", {row.occurrences} times ({row.method})"
    return f"{COMMENT[row.isa]} {row.name} of {row.module}{times}"


def bytes_of(row: BlockRow) -> str:
    """The block as bytes in decimal, for what has no text."""
    return ", ".join(map(str, row.bytes))
