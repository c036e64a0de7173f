"""Programs that trace children of their own, as debuggers do."""

from __future__ import annotations

import subprocess
import sys

import pytest

import livepro
from fixtures import Builder

EXPECTED = "5 100 5\n"
"""SIGTRAP behind the child's exec, the steps made, the status that it ends with."""


@pytest.mark.parametrize(
    ("engine", "how"),
    [("translate", ""), ("translate", "vfork"), ("block", ""), ("step", ""), ("step", "vfork")],
)
def test_a_child_gets_the_tracer_that_it_asks_for(
    builder: Builder, engine: str, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is let go for that, and counted up to there; its parent is counted to the end."""
    program = builder.hosted("debugger")
    command = [str(program), *how.split()]
    natively = subprocess.run(command, capture_output=True, text=True)
    assert natively.stdout == EXPECTED
    result = livepro.run(command, engine=engine)
    assert capfd.readouterr().out == EXPECTED
    parent, child = result.processes
    assert (result.exit, parent.exit, child.exit) == (0, 0, None)
    assert 0 < child.instructions < 5_000 < parent.instructions
    (warning,) = result.warnings
    assert "asked to be traced by another program" in warning
    assert f"Process {child.pid}" in warning


def test_what_livepro_has_launched_keeps_its_tracer() -> None:
    """livepro is its parent, which would trace it all the same."""
    code = "import ctypes; print(ctypes.CDLL(None, use_errno=True).ptrace(0, 0, 0, 0), ctypes.get_errno())"
    out = subprocess.run(
        [sys.executable, "-m", "livepro", "run", "-q", "--", sys.executable, "-c", code],
        capture_output=True,
        text=True,
    )
    assert out.stdout == "-1 1\n", "EPERM"
