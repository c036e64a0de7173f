"""Every column of every row as Apache Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from livepro.blocks.rows import COLUMNS, BlockRow
from livepro.errors import LiveproError

_WHOLE = ("length", "size", "line", "memory", "simd_width", "merged")


def check() -> None:
    """Raise LiveproError where pyarrow is not installed."""
    _libraries()


def write(rows: Sequence[BlockRow], path: Path) -> None:
    """Write the rows. Raises LiveproError where pyarrow is not installed."""
    arrow, parquet = _libraries()
    types = {
        **dict.fromkeys(COLUMNS, arrow.string()),
        **dict.fromkeys(_WHOLE, arrow.int32()),
        **dict.fromkeys(("occurrences", "address", "offset"), arrow.uint64()),
        **dict.fromkeys(("share", "time_share"), arrow.float64()),
        "call": arrow.bool_(),
    }
    schema = arrow.schema([(name, types[name]) for name in COLUMNS])
    table = arrow.Table.from_pylist([row.values() for row in rows], schema=schema)
    parquet.write_table(table, path)


def read(path: Path) -> list[BlockRow]:
    """The rows of a file that `write` wrote. Raises LiveproError for another one."""
    arrow, parquet = _libraries()
    try:
        table = parquet.read_table(path)
        return [BlockRow(**values) for values in table.to_pylist()]
    except (OSError, TypeError, arrow.ArrowException) as error:
        raise LiveproError(
            f"{path} is no table of blocks: {error}.", "Name a file that `livepro blocks` wrote."
        ) from error


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise LiveproError(
            "Parquet takes the Python package pyarrow.", "Install it: `pip install 'livepro[blocks]'`."
        ) from error
    return pyarrow, pyarrow.parquet
