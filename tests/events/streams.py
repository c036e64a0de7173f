"""Runs that record: what the tests compare of their streams."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__)
ROOT = HERE.parent.parent.parent
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
"""The programs': where their stacks are depends on it."""


class Nobody:
    """A sink that keeps nothing."""

    def begin(self, thread: Any) -> None:
        pass

    def chunk(self, thread: Any, words: Any) -> None:
        pass

    def end(self, thread: Any) -> None:
        pass

    def executed(self, thread: Any, blocks: Any) -> None:
        pass

    def so_far(self, thread: Any, blocks: Any) -> None:
        pass


def record(engine: str, command: Sequence[str | Path], output: Path, **options: Any) -> dict[str, Any]:
    """A run in a process of its own: `counts` and, for each thread in order of start, its `events`
    (`livepro.events.replay`). The sink `fails` at the chunk of that number."""
    (found,) = record_all([{"engine": engine, **options}], command, output)
    return found


def record_all(
    settings: Sequence[Mapping[str, Any]], command: Sequence[str | Path], output: Path
) -> list[dict[str, Any]]:
    """Several such runs, one after another in one process."""
    done = subprocess.run(
        [sys.executable, str(HERE), str(output), json.dumps(settings), *map(str, command)],
        env=ENVIRONMENT,
        capture_output=True,
        timeout=120,
    )
    assert output.exists(), done.stderr.decode()
    found: list[dict[str, Any]] = json.loads(output.read_text())
    output.unlink()
    for run in found:
        run["stdout"], run["stderr"] = done.stdout.decode(), done.stderr.decode()
    return found


def symbols(program: Path) -> dict[str, int]:
    from elftools.elf.elffile import ELFFile

    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        return {symbol.name: symbol["st_value"] for symbol in table.iter_symbols() if symbol.name}


def proved(source: Path, names: Mapping[str, int]) -> list[list[Any]]:
    """The accesses that a fixture's comments prove, in order."""
    out = []
    for line in source.read_text().splitlines():
        if "//@" in line and not line.startswith("//"):
            words = line.split("//@")[1].split()
            for kind, where, size in zip(words[::3], words[1::3], words[2::3], strict=True):
                name, sign, distance = re.fullmatch(r"(\w+?)(?:([+-])(\d+))?", where).groups()  # type: ignore[union-attr]
                out.append([kind, names[name] + int(f"{sign or '+'}{distance or 0}"), int(size)])
    return out


def run(command: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """One such run, in this process."""
    import os
    import platform

    import numpy as np
    from engines.allowing import compile_always

    from livepro import isa
    from livepro.engines import engine_class
    from livepro.engines.base import EngineOptions
    from livepro.engines.stream.recorder import Recorder
    from livepro.events.replay import flatten
    from livepro.session import Session

    class Sink:
        def __init__(self) -> None:
            self.threads: dict[int, Any] = {}

        def begin(self, thread: Any) -> None:
            self.threads[thread.number] = (thread, [])

        def chunk(self, thread: Any, words: Any) -> None:
            self.threads[thread.number][1].append(words)
            if recorder.chunks == options.get("fails"):
                raise RuntimeError("as planned")

        def end(self, thread: Any) -> None:
            self.threads[thread.number][1].append(np.zeros(0, np.uint64))

    if options.get("compiled"):
        compile_always()
    machine = isa.for_machine(platform.machine())
    sink = Sink()
    recorder = Recorder(
        sink,
        addresses=options.get("addresses", True),
        chunk_words=options.get("chunk_words", 1 << 16),
        turn=options.get("turn", 0),
    )
    kept = Path(options["kept"]) if "kept" in options else None
    engine = engine_class(options["engine"], machine.name)(machine, EngineOptions(stream=recorder, kept=kept))
    found = Session(engine, machine).run(
        command[0], command, dict(os.environb), aslr=options.get("aslr", False), interval_size=0
    )
    counts = [
        (process.image, thread.instructions(process.table))
        for process in found.processes
        for thread in process.threads
    ]
    return {
        "exit": found.exit,
        "warnings": found.warnings,
        "counts": counts,
        "chunks": recorder.chunks,
        "put_back": found.stats.get("blocks kept from before", 0),
        "threads": [
            list(flatten(thread.image.blocks, np.concatenate(words)))
            for thread, words in sink.threads.values()
        ],
    }


def main(output: str, settings: str, *command: str) -> None:
    """All the runs that `settings` say."""
    found = [run(command, options) for options in json.loads(settings)]
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
