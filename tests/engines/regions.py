"""Runs a command once for each region of interest asked for, all in one process.

    regions.py OUTPUT ENGINE CASES COMMAND [ARGS...]

CASES is JSON: a list of keyword arguments of `livepro.run`. The answers, in the same order:
instructions counted, in all and by thread, by function and a digest by block (see observe.py) of the first
thread, those in intervals, the command's exit status, and what the result says of the region.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from engines.observe import describe_process

import livepro
import livepro.model


def measure(engine: str, command: list[str], options: dict[str, Any]) -> dict[str, Any]:
    result = livepro.run(command, engine=engine, cache=False, **options)
    status = result.exit
    if status is None:  # it was let go
        status = os.waitstatus_to_exitcode(os.waitpid(result.processes[0].pid, 0)[1])
    processes = [describe_process(process) for process in result.processes]
    threads = [thread for process in processes for thread in process["threads"]]
    assert result.region is not None
    return {
        "instructions": result.instructions,
        "threads": [thread["instructions"] for thread in threads],
        "functions": threads[0]["functions"] if threads else {},
        "entered": entered(result.processes[0]) if result.processes else {},
        "besides_vdso": threads[0]["besides_vdso"] if threads else "",
        "intervals": sum(sum(thread["intervals"]) for thread in threads),
        "faults": [fault for thread in threads for fault in thread["faults"]],
        "exit": status,
        "began": result.region.began,
        "ended": result.region.ended,
        "warnings": list(result.warnings),
    }


def entered(process: livepro.model.ProcessResult) -> dict[str, int]:
    """Executions of the first block of each function of the program itself, by all threads."""
    table, counts = process.table, Counter[str]()
    first: dict[str, int] = {}
    for row, name in enumerate(table.function):
        if table.module[row] == process.table.module[0] or name == "turn":
            first[name] = min(first.get(name, 1 << 64), int(table.address[row]))
    for row, name in enumerate(table.function):
        if int(table.address[row]) == first.get(name):
            for thread in process.threads:
                counts[name] += int(thread.executions(table)[table.start[row]])
    return dict(counts)


def main(output: str, engine: str, cases: str, *command: str) -> None:
    answers = [measure(engine, list(command), options) for options in json.loads(cases)]
    Path(output).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
