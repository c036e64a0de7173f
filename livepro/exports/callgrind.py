"""Callgrind's profile format (Valgrind manual, "Callgrind Format Specification"): instructions by function
and source line, of all processes and threads together."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from livepro.analyses import code
from livepro.exports.rows import Document, label, text

_UNKNOWN = "???"

Place = tuple[str, str, str]
"""Module, source file, function."""


def export(document: Document) -> bytes:
    """The file. Code without a known line has line 0."""
    costs: dict[Place, Counter[int]] = defaultdict(Counter)
    for process in document["processes"]:
        functions = process.get("functions", process["hottest_functions"])
        if "code" not in process:
            for function in functions:
                costs[function["module"], _UNKNOWN, label(function)][0] += function["instructions"]
            continue
        blocks = code.unpacked(process["code"])
        executions = blocks.executions()
        function_of = np.repeat(blocks.function, blocks.length).astype(np.int64)
        lines = len(blocks.lines) + 1
        keys, where = np.unique(function_of * lines + blocks.line, return_inverse=True)
        sums = np.zeros(len(keys), np.int64)
        np.add.at(sums, where, executions)
        for key, cost in zip(keys.tolist(), sums.tolist(), strict=True):
            function = functions[key // lines]
            file, line = blocks.lines[key % lines - 1] if key % lines else (_UNKNOWN, 0)
            costs[function["module"], file, label(function)][line] += cost
    total = sum(sum(counter.values()) for counter in costs.values())
    out = [
        "# callgrind format",
        "version: 1",
        f"creator: livepro {document['livepro']}",
        f"cmd: {_name(' '.join(document['command']))}",
        "positions: line",
        "events: Ir",
        f"summary: {total}",
    ]
    for (module, file, function), counter in costs.items():
        out += ["", f"ob={_name(module)}", f"fl={_name(file)}", f"fn={_name(function)}"]
        out += [f"{line} {cost}" for line, cost in sorted(counter.items()) if cost]
    return text("\n".join([*out, "", f"totals: {total}", ""]))


def _name(name: str) -> str:
    """On one line; a parenthesis in front would be a compressed name."""
    plain = "".join(c if c.isprintable() else "?" for c in name)
    return f" {plain}" if plain.startswith("(") else plain
