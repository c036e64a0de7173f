"""Attaches to a process under an engine and tells what was seen."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
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


@contextlib.contextmanager
def watched_ends(seen: dict[str, Any], counter: int) -> Iterator[None]:
    """Meanwhile it is taken down when threads are taken over and let go, and where they are then."""
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
    try:
        yield
    finally:
        Tracer._take_over = take  # type: ignore[method-assign]
        Tracer.let_run = release  # type: ignore[method-assign]


def fail_at(engine: Any, name: str, number: int) -> None:
    """Have a method of an engine, or of a part of it (`part.method`), raise on its call of that number."""
    part, _, word = name.rpartition(".")
    owner = getattr(engine, part) if part else engine
    method = getattr(owner, word)
    calls = iter(range(1, sys.maxsize))

    def failing(*arguments: Any, **more: Any) -> Any:
        if next(calls) == number:
            raise Injected(f"{name}, call {number}")
        return method(*arguments, **more)

    setattr(owner, word, failing)


def observe(
    pid: int, *, counter: int = 0, fail: tuple[str, int] | None = None, **options: Any
) -> dict[str, Any]:
    """Attach to a process with `options` of `livepro.attach`; returns what was seen.

    `counter` is an address that is read, with the pc, when a thread is taken over and when it is
    let go; `fail` (a method of the engine, the number of a call) is where an error is raised.
    """
    seen: dict[str, Any] = {}

    def started(attachment: Attachment) -> None:
        engine: Any = attachment.engine
        if fail is not None:
            fail_at(engine, *fail)
        leave, attach = engine.leave, engine.attach

        def leaving() -> None:
            seen["leaving"] = time.monotonic()
            leave()

        def attaching(*arguments: Any) -> None:
            seen.setdefault("attaching", time.monotonic())
            attach(*arguments)

        engine.leave, engine.attach = leaving, attaching

    with watched_ends(seen, counter):
        try:
            result = livepro.attach(pid, started=started, **options)
        except LiveproError as error:
            return seen | {"error": error.cause, "remedy": error.remedy, "status": error.status}
        except Injected as error:
            return seen | {"injected": str(error)}
    return seen | {
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
                "image": process.image,
                "spin": sum(
                    int(n)
                    for t in process.threads
                    for n, name in zip(
                        t.block_instructions(process.table).tolist(), process.table.function, strict=True
                    )
                    if name == "spin"
                ),
                "intervals": [[i.instructions for i in t.intervals] for t in process.threads],
            }
            for process in result.processes
        ],
    }
