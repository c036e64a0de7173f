"""Assembly for llvm-mca: a region of its own for each block.

Markers: the manual of llvm-mca, "Using markers to analyze specific code blocks". They begin with ``#`` for
every instruction set: llvm-mca 14 does not see those behind AArch64's ``//``.
Blocks that have no text are left out, and a comment says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from livepro.blocks.files.assembly import COMMENT, NoText, lines, title
from livepro.blocks.rows import BlockRow


def region(row: BlockRow, name: str) -> str:
    """One block between its markers. Raises NoText."""
    body = "\n".join(lines(row))
    return f"# LLVM-MCA-BEGIN {name}\n{body}\n# LLVM-MCA-END\n"


def text(rows: Sequence[BlockRow], name: str) -> str:
    """All blocks, their regions named by function and offset (with a number where a name comes again)."""
    out = []
    seen: dict[str, int] = {}
    for row in rows:
        number = seen[row.name] = seen.get(row.name, 0) + 1
        label = row.name if number == 1 else f"{row.name}.{number}"
        try:
            out.append(f"{title(row)}\n{region(row, label)}")
        except NoText as error:
            out.append(f"{title(row)}\n{COMMENT[row.isa]} left out: {error}\n")
    return "\n".join(out)


def one(row: BlockRow) -> bytes:
    """A file with this block alone."""
    return text([row], "llvm-mca").encode()
