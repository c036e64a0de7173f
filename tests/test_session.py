"""What a run does about livepro's own signals, moment by moment."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

import livepro
from livepro.engines import engine_class
from livepro.session import Session


def test_an_interrupt_before_there_is_a_program_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """livepro alone has been sent it, and the program takes longer to appear than it waits."""
    tracer = SimpleNamespace(signals_seen={}, live=[])
    session = Session(cast(Any, SimpleNamespace(tracer=tracer)), cast(Any, None))
    look, looks = session._pass_on, []

    def looking() -> None:
        looks.append(1)
        look()

    monkeypatch.setattr(session, "_pass_on", looking)
    program = subprocess.Popen(["sleep", "600"])
    try:
        with session._signals():
            signal.raise_signal(signal.SIGINT)
            until = time.monotonic() + 10
            while len(looks) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            assert len(looks) >= 2
            assert program.poll() is None
            tracer.live.append(SimpleNamespace(pid=program.pid))
            assert program.wait(timeout=10) == -signal.SIGINT
    finally:
        program.kill()
        program.wait()


def test_a_signal_before_the_program_has_begun_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a program on its way: the process that is to become it has no handlers of livepro's own."""
    execve = os.execve

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        execve(*arguments)

    monkeypatch.setattr(os, "execve", interrupted)
    result = livepro.run(["true"])
    assert (result.exit, result.instructions) == (128 + signal.SIGTERM, 0)


@pytest.mark.parametrize("engine", ["step", "block", "translate"])
@pytest.mark.parametrize("command", [["/bin/true"], ["/bin/sh", "-c", "/bin/true & wait"]])
def test_an_error_as_a_thread_ends_is_told(
    engine: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel holds a thread that exits until it is told to go on. The program goes on without livepro."""

    def fails(*_: object, **__: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(engine_class(engine, platform.machine()), "exiting", fails)
    result = livepro.run(command, engine=engine)
    assert result.exit == 0
    assert any("livepro failed in the middle of the run (OSError: no)" in text for text in result.warnings)
