"""Benchmarks of an installed SPEC CPU 2017 whose run directories `runcpu --action=setup` has made.

Each run directory holds `speccmds.cmd`, the command lines that `specinvoke` executes (SPEC CPU 2017,
"Utilities", specinvoke: -C directory, -i standard input, -o and -e output, -E variable). Binaries
and inputs stay where they are: nothing of SPEC's is copied.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_WITH_VALUE = ("-o", "-e", "-b", "-S", "-N", "-k", "-a")
_REDIRECTIONS = (">", ">>", "2>", "2>>", "<")


def benchmarks(tree: Path) -> list[dict[str, Any]]:
    """A benchmark, as a manifest would have it, for each command of each run directory of the tree."""
    out = []
    for commands in sorted(tree.glob("benchspec/CPU/*/run/run_*/speccmds.cmd")):
        folder = commands.parent
        size = folder.name.removeprefix("run_")
        found = list(_commands(commands.read_text(), folder))
        for number, benchmark in enumerate(found, 1):
            name = f"{folder.parts[-3]}.{size}" + (f".{number}" if len(found) > 1 else "")
            out.append({"name": name, **benchmark})
    return out


def _commands(text: str, folder: Path) -> Iterator[dict[str, Any]]:
    environment: dict[str, str] = {}
    where = str(folder)
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        given = ""
        while words and words[0].startswith("-"):
            option = words.pop(0)
            if option == "-E" and len(words) > 1:
                environment[words.pop(0)] = words.pop(0)
            elif option == "-C" and words:
                where = words.pop(0)
            elif option == "-i" and words:
                given = words.pop(0)
            elif option in _WITH_VALUE and words:
                words.pop(0)
        if not words:
            continue
        at = next((i for i, word in enumerate(words) if word in _REDIRECTIONS), len(words))
        program = str((Path(where) / words[0]).resolve())
        yield {
            "program": program,
            "run": ["{program}", *words[1:at]],
            "working-directory": where,
            "environment": dict(environment),
            **({"input": str(Path(where) / given)} if given else {}),
        }
