"""The block engine attaches and detaches."""

from __future__ import annotations

import signal
import time

import pytest
from attach.attach_contract import AttachContract
from attach.targets import TIMEOUT, Target, command_line, eventually

from fixtures import Builder


class TestBlockAttach(AttachContract):
    engine = "block"


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.15, 0.2])
def test_a_process_let_go_before_all_its_threads_are_watched(delay: float, builder: Builder) -> None:
    """Those that are not have to wait until the breakpoints that the others run towards are gone."""
    with Target(builder.hosted("attach_waits"), "8") as target:
        tracing = command_line(target.pid, "--engine", "block", "-q")
        eventually(lambda: any(target.tracers().values()))
        time.sleep(delay)  # which thread the signal finds watched is what varies
        tracing.send_signal(signal.SIGTERM)
        tracing.communicate(timeout=TIMEOUT)
        # To run on: a breakpoint left would end it. Too short a time could hide a fault, not make one.
        time.sleep(0.1)
        assert target.process.poll() is None
        assert target.end() == (0, "failures 0\n", "")
