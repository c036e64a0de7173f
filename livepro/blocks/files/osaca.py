"""Assembly for OSACA, each block between the markers that it shares with IACA.

Markers: OSACA's documentation, "Assembly markers". Their bytes are written in decimal: it
reads no others. OSACA analyses one block of a file: several in one are for a reader, or
to be taken apart; a directory gets a file each.
"""

from __future__ import annotations

from collections.abc import Sequence

from livepro.blocks.files.assembly import lines, listing
from livepro.blocks.rows import BlockRow

_MARKERS = {
    "x86_64": ("\tmovl $111, %ebx\n\t.byte 100,103,144\n", "\tmovl $222, %ebx\n\t.byte 100,103,144\n"),
    "aarch64": ("\tmov x1, #111\n\t.byte 213,3,32,31\n", "\tmov x1, #222\n\t.byte 213,3,32,31\n"),
}
"""What begins and ends the part that is analysed, by instruction set."""


def marked(row: BlockRow) -> str:
    """One block between its markers. Raises NoText."""
    begin, end = _MARKERS[row.isa]
    body = "\n".join(lines(row))
    return f"{begin}{body}\n{end}"


def text(rows: Sequence[BlockRow], name: str) -> str:
    """All blocks, one behind the other."""
    return listing(rows, lambda row, _: marked(row))


def one(row: BlockRow) -> bytes:
    """A file with this block alone."""
    return text([row], "osaca").encode()
