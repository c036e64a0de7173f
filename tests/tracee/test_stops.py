"""What the tracer is told first."""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest

from livepro.tracee.stops import ROUND, next_in_turn


@pytest.fixture(autouse=True)
def _no_others() -> None:
    """Children that other tests have left would be named, too."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def test_some_go_first_each_time_others() -> None:
    children = [subprocess.Popen(["true"]) for _ in range(3)]
    pids = [child.pid for child in children]
    for pid in pids:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        # The kernel would name them in their order.
        assert next_in_turn(pids[1:2], 0) == (pids[1], 0)
        assert next_in_turn((), 0) == (pids[0], 0)
        assert next_in_turn(pids, 0) == (pids[2], 0)
    finally:
        for child in children:
            child.returncode = 0  # it has been waited for


def test_each_is_the_first_in_its_turn() -> None:
    """However many there are, and however often the others stop."""
    for count in (2, 4, ROUND):
        children = [subprocess.Popen(["true"]) for _ in range(count)]
        pids = [child.pid for child in children]
        for pid in pids:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        try:
            for turn, pid in enumerate(pids):
                assert next_in_turn(pids, turn * ROUND) == (pid, 0)
        finally:
            for child in children:
                child.returncode = 0
