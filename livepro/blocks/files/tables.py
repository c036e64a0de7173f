"""Every column of every row as CSV (RFC 4180, a header first) or JSON (an array of objects)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from livepro.blocks.rows import COLUMNS, BlockRow
from livepro.errors import LiveproError

_WHOLE = ("length", "size", "offset", "address", "line", "memory", "simd_width", "merged")


def text(rows: Sequence[BlockRow], name: str) -> str:
    """The rows in the format called `name`, csv or json. An absent number is empty in CSV, null in JSON;
    truth values are 0 and 1 in CSV."""
    if name == "json":
        return "[\n" + ",\n".join(json.dumps(row.values()) for row in rows) + "\n]\n"
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in rows:
        values = row.values()
        table.writerow([int(v) if isinstance(v, bool) else v for v in values.values()])
    return out.getvalue()


def read(path: Path) -> list[BlockRow]:
    """The rows of a CSV or JSON file that `text` made. Raises LiveproError for another one."""
    try:
        if path.suffix == ".json":
            return [BlockRow(**values) for values in json.loads(path.read_text())]
        with path.open(newline="") as stream:
            return [_row(values) for values in csv.DictReader(stream)]
    except (OSError, TypeError, ValueError, KeyError) as error:
        raise LiveproError(
            f"{path} is no table of blocks: {error}.", "Name a file that `livepro blocks` wrote."
        ) from error


def _row(values: dict[str, str]) -> BlockRow:
    if set(values) != set(COLUMNS):
        raise ValueError(f"its columns are {', '.join(map(str, values))}")
    numbers = {name: int(values[name]) for name in _WHOLE}
    parts = {name: float(values[name]) if values[name] else None for name in ("share", "time_share")}
    times = int(values["occurrences"]) if values["occurrences"] else None
    rest: dict[str, Any] = {**values, **numbers, **parts}
    return BlockRow(**{**rest, "occurrences": times, "call": values["call"] == "1"})
