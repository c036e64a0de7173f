"""What a 32-bit word says about itself, by the Arm ARM's encoding tables.

Tables of (mask, value) rows, for the facts that capstone does not give: which
way memory is accessed, and which extension introduced an encoding.
"""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[int, int, str]
"""A word belongs to the row if `word & mask == value`."""


def signed(field: int, bits: int) -> int:
    """The lowest `bits` of a field as a number in two's complement."""
    value = field & (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def first_match(rows: Sequence[Row], word: int) -> str | None:
    """The name of the first row that `word` belongs to, or None."""
    for mask, value, name in rows:
        if word & mask == value:
            return name
    return None
