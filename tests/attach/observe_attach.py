"""Attaches to a process under an engine, in a process of its own, and writes down what was seen.

    observe_attach.py OUTPUT PID OPTIONS

OPTIONS are keyword arguments of `livepro.attach` as JSON, and for this program: `counter` (an
address that is read, with the pc, when a thread is taken over and when it is let go) and
`fail` (method of the engine, number of the call that raises).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import livepro
from livepro.attachment import Attachment
from livepro.errors import LiveproError
from livepro.tracee import TracedThread, Tracer


class Injected(Exception):
    """The error that `fail` asks for."""


def look(thread: TracedThread, counter: int) -> dict[str, int]:
    """Where a stopped thread is, and what its loop counter says."""
    pc = getattr(thread.registers(), thread.layout.pc)
    return {"pc": pc, "counter": int.from_bytes(thread.read(counter, 8), "little")}


def watch_ends(seen: dict[str, Any], counter: int) -> None:
    """Take down when threads are taken over and let go, and where they are then."""
    take, release = Tracer._take_over, Tracer.let_run

    def taking(tracer: Tracer, tid: int, status: int) -> None:
        if counter and status >> 16 == 128:
            process, _ = tracer._seized[tid]
            thread = TracedThread(tid, process, tracer.layout)
            process.threads.remove(thread)
            seen["taken"] = look(thread, counter)
        take(tracer, tid, status)
        seen["running"] = time.monotonic()

    def releasing(tracer: Tracer, thread: TracedThread, number: int = 0) -> None:
        if counter:
            seen["released"] = look(thread, counter)
        release(tracer, thread, number)
        seen["free"] = time.monotonic()

    Tracer._take_over = taking  # type: ignore[method-assign]
    Tracer.let_run = releasing  # type: ignore[method-assign]


def fail_at(engine: Any, name: str, number: int) -> None:
    """Have a method raise on its call of that number."""
    method = getattr(engine, name)
    calls = iter(range(1, sys.maxsize))

    def failing(*arguments: Any, **more: Any) -> Any:
        if next(calls) == number:
            raise Injected(f"{name}, call {number}")
        return method(*arguments, **more)

    setattr(engine, name, failing)


def main() -> None:
    output, pid, text = sys.argv[1:]
    options = json.loads(text)
    seen: dict[str, Any] = {}
    watch_ends(seen, options.pop("counter", 0))
    fail = options.pop("fail", None)

    def started(attachment: Attachment) -> None:
        if fail is not None:
            fail_at(attachment.engine, *fail)
        leave, attach = attachment.engine.leave, attachment.engine.attach

        def leaving() -> None:
            seen["leaving"] = time.monotonic()
            leave()

        def attaching(*arguments: Any) -> None:
            seen.setdefault("attaching", time.monotonic())
            attach(*arguments)

        attachment.engine.leave = leaving  # type: ignore[method-assign]
        attachment.engine.attach = attaching  # type: ignore[method-assign]

    try:
        result = livepro.attach(int(pid), started=started, **options)
    except LiveproError as error:
        seen |= {"error": error.cause, "remedy": error.remedy, "status": error.status}
    except Injected as error:
        seen["injected"] = str(error)
    else:
        seen |= {
            "exit": result.exit,
            "instructions": result.instructions,
            "command": list(result.command),
            "warnings": list(result.warnings),
            "processes": [
                {
                    "pid": process.pid,
                    "exit": process.exit,
                    "instructions": process.instructions,
                    "threads": [t.instructions(process.table) for t in process.threads],
                    "intervals": [[i.instructions for i in t.intervals] for t in process.threads],
                }
                for process in result.processes
            ],
        }
    Path(output).write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
