"""Runs a Java program under livepro and writes down who made the code that it executed.

count.py OUTPUT METHOD OPTIONS COMMAND [ARGS...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import livepro
from livepro.analyses import origins, simd
from livepro.analyses.dataframe import entries
from livepro.model import ProcessResult


def describe(process: ProcessResult, method: str) -> dict[str, Any]:
    table = process.table
    own = entries(process.threads, len(table))
    labels = origins.labels(table)
    return {
        "labelled": table.label is not None,
        "instructions": process.instructions,
        "threads": [
            {
                "name": thread.name,
                "instructions": thread.instructions(table),
                "simd": simd.total(simd.thread_rows(table, thread)),
                "origins": [
                    [r.origin, r.tier, r.instructions, r.simd] for r in origins.origins(table, thread)
                ],
            }
            for thread in process.threads
        ],
        "methods": [
            [m.method, m.origin, m.tier, m.instructions] for m in origins.methods(table, *process.threads)
        ],
        "sets": {
            str(origin): sorted(
                {
                    r.set
                    for thread in process.threads
                    for r in simd.SimdKinds(table).rows_by_label(thread)
                    if r.origin == origin
                }
            )
            for origin in origins.COMPILED
        },
        "blocks": [
            {
                "address": int(table.address[row]),
                "origin": str(labels[row].origin),
                "tier": labels[row].tier,
                "entries": int(own[row]),
                "partial": sum(int((thread.partial[:, 0] == row).sum()) for thread in process.threads),
                "code": [
                    [i.opcode, i.simd.width if i.simd else 0, i.writes_memory]
                    for i in table.block(row).instructions
                ],
            }
            for row in range(len(table))
            if method and labels[row].name == method
        ],
    }


def main() -> None:
    output, method, options, *command = sys.argv[1:]
    result = livepro.run(command, engine="translate", **json.loads(options))
    document = {
        "exit": result.exit,
        "warnings": list(result.warnings),
        "processes": [describe(process, method) for process in result.processes],
    }
    Path(output).write_text(json.dumps(document))


if __name__ == "__main__":
    main()
