"""The block engine attaches and detaches."""

from __future__ import annotations

import signal

import pytest
from attach.attach_contract import AttachContract
from attach.masks_contract import MasksContract
from attach.targets import TIMEOUT, Target, command_line, eventually

from fixtures import Builder


class TestBlockAttach(AttachContract, MasksContract):
    engine = "block"


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6, 0.8, 0.95])
def test_a_process_let_go_before_all_its_threads_are_watched(share: float, builder: Builder) -> None:
    """Those that are not have to wait until the breakpoints that the others run towards are gone."""
    with Target(builder.hosted("attach_waits"), "8") as target:

        def watched() -> bool:
            tracers = list(target.tracers().values())
            return sum(map(bool, tracers)) > share * len(tracers)

        tracing = command_line(target.pid, "--engine", "block", "-q")
        eventually(watched)
        tracing.send_signal(signal.SIGTERM)
        tracing.communicate(timeout=TIMEOUT)
        # It runs on: a breakpoint left would end it.
        before = target.ticks
        eventually(lambda: target.process.poll() is not None or target.ticks > before + 5)
        assert target.process.poll() is None
        assert target.end() == (0, "failures 0\n", "")
