"""Every column of every row as CSV (RFC 4180, a header first) or JSON (an array of objects)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from livepro.blocks.rows import COLUMNS, BlockRow


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
