"""livepro's own file of interval vectors: the vectors with what is known of their blocks, as JSON.

Schema ``livepro-vectors/1``: ``command`` (list of strings), ``machine``, ``pid``, ``tid``, ``thread``
(its name), ``interval_size``, ``blocks`` (``id``, ``address``, ``function``, ``module``, ``offset``, lists
of the same length, ids ascending), ``metrics`` (rows of ``name``, ``group``, ``total``, exact, of the whole
run), ``density`` (for each block a list of pairs ``[metric, part]``: the part of the block's
instructions that the metric with that number counts) and ``intervals``, for each a list of ids and
a list of the instructions executed in them. Strings as in the JSON report.
"""

from __future__ import annotations

import json
from typing import Any

from livepro.errors import LiveproError
from livepro.formats.files import open_text
from livepro.formats.json_report import SCHEMA as REPORT
from livepro.formats.json_report import mismatch

SCHEMA = "livepro-vectors/1"

SHAPE: dict[str, Any] = {
    "schema": str,
    "command": [str],
    "machine": str,
    "pid": int,
    "tid": int,
    "thread": str,
    "interval_size": int,
    "blocks": {"id": [int], "address": [int], "function": [str], "module": [str], "offset": [int]},
    "metrics": [{"name": str, "group": str, "total": int}],
    "density": list,
    "intervals": [[[int]]],
}


def write(name: str, document: dict[str, Any]) -> None:
    """Write `document` to file `name`, gzipped if it ends in ``.gz``."""
    with open_text(name) as out:
        json.dump({"schema": SCHEMA, **document}, out, allow_nan=False, separators=(",", ":"))
        out.write("\n")


def read(name: str) -> dict[str, Any]:
    """Read such a file and check its shape. Raises LiveproError for one that is none."""
    with open_text(name, "r") as stream:
        try:
            document = json.load(stream)
        except json.JSONDecodeError as error:
            raise LiveproError(
                f"{name}:{error.lineno}: not JSON: {error.msg}.", "Give a file that livepro wrote."
            ) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == REPORT:
        raise LiveproError(
            f"{name} is livepro's report of a run: it tells how many vectors there were, not what they hold.",
            "Give the vector file that `livepro run --bb-out-file` wrote, or what `livepro simpoint run "
            "--save FILE.json` saved.",
        )
    if schema != SCHEMA:
        raise LiveproError(
            f"{name} has no vectors (its schema: {schema!r}, not {SCHEMA!r}).",
            "Give a file that `livepro simpoint run --save` wrote.",
        )
    problem = mismatch(document, SHAPE, "")
    blocks = document.get("blocks", {})
    if not problem and len({len(document["density"]), *(len(blocks[key]) for key in blocks)}) != 1:
        problem = "the lists of blocks differ in length"
    if not problem:
        wrong = [
            n
            for n, pair in enumerate(document["intervals"])
            if len(pair) != 2 or len(pair[0]) != len(pair[1])
        ]
        if wrong:
            problem = f"intervals[{wrong[0]}] is no list of ids beside a list of as many counts"
    if problem:
        raise LiveproError(f"{name} is no valid file of vectors: {problem}.", "Write it anew.")
    out: dict[str, Any] = document
    return out
