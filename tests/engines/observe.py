"""Runs a command under an engine in a process of its own and writes down the result as JSON.

    observe.py OUTPUT OPTIONS COMMAND [ARGS...]

    observe.py --serve

OPTIONS are keyword arguments of `livepro.run` as JSON. The tests start it as a
subprocess: a hung tracer ends with a time-out instead of hanging the tests, and
the command's standard streams are the subprocess's own. With --serve it does so
again and again, each time in a fork of itself, where starting Python and importing
what livepro needs takes seconds (an emulated machine): see `serve`.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import pkgutil
import platform
import signal
import sys
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from engines.allowing import heeded

import livepro
from livepro.analyses import simd
from livepro.errors import LiveproError
from livepro.isa import MACHINES
from livepro.linux.symbols import VDSO
from livepro.model import BlockTable, ProcessResult, RunResult, Snapshot, ThreadCounts


def faults(table: BlockTable, thread: ThreadCounts) -> list[str]:
    """Ways in which a thread's counts contradict themselves or the block table."""
    out = []
    for row, prefix, times in thread.partial.tolist():
        begun_late = times < 0 and -times <= int(thread.entries[row]) + sum(
            n for r, k, n in thread.partial.tolist() if r == row and k > prefix
        )
        if not 0 < prefix < int(table.length[row]) or not (times > 0 or begun_late):
            out.append(f"partial execution of {prefix} of {table.length[row]} instructions, {times} times")
    if (thread.block_instructions(table).astype(np.int64) < 0).any():
        out.append("a block has less than no instructions")
    if thread.intervals:
        total = sum(interval.instructions for interval in thread.intervals)
        if total != thread.instructions(table):
            out.append(f"intervals hold {total} of {thread.instructions(table)} instructions")
        per_block = dict.fromkeys(range(len(table)), 0)
        for interval in thread.intervals:
            if int(interval.counts.sum()) != interval.instructions:
                out.append("an interval's counts do not sum to its instructions")
            for row, count in zip(interval.rows.tolist(), interval.counts.tolist(), strict=True):
                per_block[row] += count
        if list(per_block.values()) != thread.block_instructions(table).tolist():
            out.append("the intervals do not sum to the blocks' counts")
    return out


def table_faults(table: BlockTable) -> list[str]:
    """Ways in which a block table contradicts itself."""
    out = []
    for row in range(len(table)):
        block = table.block(row)
        if sum(i.length for i in block.instructions) != block.size:
            out.append(f"block {block.id} is not as long as its instructions")
        if any(i.flow.ends_block for i in block.instructions[:-1]):
            out.append(f"block {block.id} goes on behind a control transfer")
    return out


def digests(table: BlockTable, thread: ThreadCounts) -> dict[str, str]:
    """Equal for two runs that executed the same code at the same addresses equally often: `digest` all code,
    `besides_vdso` all but the vDSO's.

    Blocks go in by address: the order in which threads first execute them is chance, and so is whether
    one that was unmapped and came back the same has one row or two.
    """
    blocks = [(int(address), code.hex()) for address, code in zip(table.address, table.code, strict=True)]
    vdso = {block for block, module in zip(blocks, table.module, strict=True) if module == VDSO}
    counts: Counter[tuple[int, str, int]] = Counter()
    for block, times in zip(blocks, thread.entries.tolist(), strict=True):
        counts[*block, 0] += times
    for row, prefix, times in thread.partial.tolist():
        counts[*blocks[row], prefix] += times
    rows = sorted((*key, times) for key, times in counts.items() if times)
    besides = [row for row in rows if row[:2] not in vdso]
    digest = _digest(rows)
    return {"digest": digest, "besides_vdso": digest if len(besides) == len(rows) else _digest(besides)}


def _digest(rows: list[Any]) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def vectors(table: BlockTable, thread: ThreadCounts) -> str:
    """Equal for two runs whose intervals hold the same blocks, at the same addresses, equally often."""
    rows = [
        sorted(
            zip(table.address[i.rows].tolist(), table.length[i.rows].tolist(), i.counts.tolist(), strict=True)
        )
        for i in thread.intervals
    ]
    return _digest(rows) if rows else ""


def describe_thread(table: BlockTable, thread: ThreadCounts) -> dict[str, Any]:
    counts = thread.form_counts(table)
    functions: dict[str, int] = {}
    for name, count in zip(table.function, thread.block_instructions(table).tolist(), strict=True):
        functions[name] = functions.get(name, 0) + count
    return {
        "tid": thread.tid,
        "name": thread.name,
        "instructions": thread.instructions(table),
        "rep_instructions": sum(
            int(n) for n, i in zip(counts.tolist(), table.instructions, strict=True) if i.rep
        ),
        "rep_iterations": thread.rep_iterations,
        "fldcw": sum(
            int(n) for n, i in zip(counts.tolist(), table.instructions, strict=True) if i.opcode == "FLDCW"
        ),
        "intervals": [interval.instructions for interval in thread.intervals],
        "vectors": vectors(table, thread),
        "functions": {name: count for name, count in functions.items() if name and count},
        **digests(table, thread),
        "faults": faults(table, thread),
    }


def describe_process(process: ProcessResult) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "ppid": process.ppid,
        "image": process.image,
        "command": list(process.command),
        "exit": process.exit,
        "instructions": process.instructions,
        "blocks": len(process.table),
        "addresses": process.table.address.tolist(),
        "faults": table_faults(process.table),
        "simd": _simd(process),
        "threads": [describe_thread(process.table, thread) for thread in process.threads],
    }


def _simd(process: ProcessResult) -> dict[str, int]:
    """SIMD instructions executed, by set."""
    total: Counter[str] = Counter()
    for thread in process.threads:
        total.update(simd.by_set(simd.thread_rows(process.table, thread)))
    return dict(total)


def describe_run(result: RunResult) -> dict[str, Any]:
    return {
        "engine": result.engine,
        "exit": result.exit,
        "instructions": result.instructions,
        "warnings": list(result.warnings),
        "stats": dict(result.stats),
        "processes": [describe_process(process) for process in result.processes],
        "snapshots": [describe_snapshot(result, snapshot) for snapshot in result.snapshots],
    }


def serve() -> None:
    """Carry out requests, a line of JSON each on standard input: `module` (`observe`,
    `commanded` or `regions`), its `arguments`, `streams` the files that become standard input, output and
    error, `environment`, `directory`. The answer is a line with the number of the wait status,
    or `timeout` seconds later None."""
    others = set(MACHINES) - {platform.machine()}
    for module in pkgutil.walk_packages(livepro.__path__, "livepro.", lambda name: None):
        if not others & set(module.name.split(".")):
            with contextlib.suppress(ImportError):  # of what is optional
                import_module(module.name)  # else each run would do that anew
    modules = {name: import_module(f"engines.{name}") for name in ("observe", "commanded", "regions")}
    gc.collect()
    gc.freeze()  # else the first collection of each child would copy all its pages
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            for number, name in enumerate(request["streams"]):
                os.dup2(os.open(name, os.O_WRONLY if number else os.O_RDONLY), number)
            os.environ.clear()
            os.environ.update(request["environment"])
            if request["directory"]:
                os.chdir(request["directory"])
            try:
                modules[request["module"]].main(*request["arguments"])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(0)
        deadline = time.monotonic() + request["timeout"]
        status = None
        while (status := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        if status[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        print(json.dumps(status[1] if status[0] else None), flush=True)


def describe_snapshot(result: RunResult, snapshot: Snapshot) -> dict[str, Any]:
    threads = [
        describe_thread(result.processes[t.process].table, t.counts(result.processes))
        for t in snapshot.threads
    ]
    return {"label": snapshot.label, "seconds": snapshot.seconds, "threads": threads}


def main(output: str, options: str, *command: str) -> None:
    try:
        result = livepro.run(command, **heeded(json.loads(options)))
        failed = [text for text in result.warnings if "livepro failed" in text]
        if failed:
            raise RuntimeError(failed[0])
        text = describe_run(result)
    except LiveproError as error:
        text = {"error": error.cause, "remedy": error.remedy, "status": error.status}
    Path(output).write_text(json.dumps(text))


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve()
    else:
        main(*sys.argv[1:])
