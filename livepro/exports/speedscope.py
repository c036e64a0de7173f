"""speedscope's own file format (its wiki, "Importing from custom sources"): a sampled profile for each
thread, whose samples are functions weighed by their instructions."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from livepro.exports.rows import Document, rows, text

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def export(document: Document) -> bytes:
    """The file."""
    frames: dict[tuple[str, str], int] = {}
    profiles: dict[str, list[tuple[list[int], int]]] = defaultdict(list)
    for row in rows(document):
        stack = [
            frames.setdefault(key, len(frames)) for key in ((row.module, ""), (row.function, row.module))
        ]
        profiles[f"{row.process} {row.thread}".strip()].append((stack, row.instructions))
    made: list[dict[str, Any]] = [
        {
            "type": "sampled",
            "name": name,
            "unit": "none",
            "startValue": 0,
            "endValue": sum(weight for _, weight in samples),
            "samples": [stack for stack, _ in samples],
            "weights": [weight for _, weight in samples],
        }
        for name, samples in profiles.items()
    ]
    return text(
        json.dumps(
            {
                "$schema": SCHEMA,
                "exporter": f"livepro {document['livepro']}",
                "name": " ".join(document["command"]),
                "activeProfileIndex": 0,
                "shared": {
                    "frames": [{"name": name, **({"file": file} if file else {})} for name, file in frames]
                },
                "profiles": made,
            }
        )
    )
