"""Every column of every row as the table `blocks` of an SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from livepro.blocks.rows import COLUMNS, BlockRow
from livepro.errors import LiveproError

_NUMBERS = {
    **dict.fromkeys(("length", "size", "occurrences", "offset", "address", "line"), "INTEGER"),
    **dict.fromkeys(("call", "memory", "simd_width", "merged"), "INTEGER"),
    **dict.fromkeys(("share", "time_share"), "REAL"),
}


def write(rows: Sequence[BlockRow], path: Path) -> None:
    """Write the rows into the database, in the place of a table `blocks` that is there. Raises LiveproError
    for a file that is no database."""
    columns = ", ".join(f'"{name}" {_NUMBERS.get(name, "TEXT")}' for name in COLUMNS)
    try:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DROP TABLE IF EXISTS blocks")
            database.execute(f"CREATE TABLE blocks ({columns})")
            marks = ", ".join("?" * len(COLUMNS))
            database.executemany(
                f"INSERT INTO blocks VALUES ({marks})", (tuple(row.values().values()) for row in rows)
            )
    except sqlite3.Error as error:
        raise LiveproError(f"{path} cannot be written: {error}.", "Name a new file.") from error
