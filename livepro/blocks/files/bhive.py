"""BHive's lines ``hex,frequency`` (its `benchmark/sources/*.csv`).

The frequency is a block's share of all executions or samples; that of a block that was
only found in a file is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from livepro.blocks.rows import BlockRow


def text(rows: Sequence[BlockRow], name: str) -> str:
    """A line for each row."""
    return "".join(f"{row.code},{row.share or 0.0:.8f}\n" for row in rows)
