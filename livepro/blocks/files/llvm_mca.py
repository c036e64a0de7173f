"""Assembly for llvm-mca: a region of its own for each block.

Markers: the manual of llvm-mca, "Using markers to analyze specific code blocks". They begin with ``#`` for
every instruction set: llvm-mca 14 does not see those behind AArch64's ``//``.
"""

from __future__ import annotations

from collections.abc import Sequence

from livepro.blocks.files.assembly import lines, listing
from livepro.blocks.rows import BlockRow


def region(row: BlockRow, name: str) -> str:
    """One block between its markers. Raises NoText."""
    body = "\n".join(lines(row))
    return f"# LLVM-MCA-BEGIN {name}\n{body}\n# LLVM-MCA-END\n"


def text(rows: Sequence[BlockRow], name: str) -> str:
    """All blocks, their regions named by function and offset."""
    return listing(rows, region)


def one(row: BlockRow) -> bytes:
    """A file with this block alone."""
    return text([row], "llvm-mca").encode()
