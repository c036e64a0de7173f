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
from pathlib import Path
from typing import Any

from engines.observe import describe_process

import livepro


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
        "besides_vdso": threads[0]["besides_vdso"] if threads else "",
        "intervals": sum(sum(thread["intervals"]) for thread in threads),
        "faults": [fault for thread in threads for fault in thread["faults"]],
        "exit": status,
        "began": result.region.began,
        "ended": result.region.ended,
        "warnings": list(result.warnings),
    }


def main(output: str, engine: str, cases: str, *command: str) -> None:
    answers = [measure(engine, list(command), options) for options in json.loads(cases)]
    Path(output).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
