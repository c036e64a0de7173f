"""A block as the text of an assembler."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def listing(rows: Sequence[BlockRow], marked: Callable[[BlockRow, str], str]) -> str:
    """The text of all blocks, each as `marked` writes it with its name (with a number where a name comes
    again). Blocks that have no text are left out, and a comment says so."""
    out = []
    seen: dict[str, int] = {}
    for row in rows:
        number = seen[row.name] = seen.get(row.name, 0) + 1
        try:
            body = marked(row, row.name if number == 1 else f"{row.name}.{number}")
        except NoText as error:
            body = f"{COMMENT[row.isa]} left out: {error}\n"
        out.append(f"{title(row)}\n{body}")
    return "\n".join(out)
