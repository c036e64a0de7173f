"""What engines must do that have threads trap in their own code, where these block SIGTRAP.

Under the translate engine such a thread does not block it any longer once it has met code that is not
translated yet.
"""

from __future__ import annotations

import subprocess

from engines.contract import Runner
from engines.observed import TIMEOUT

from fixtures import Builder


class BlockedTrapsContract:
    """Beside `EngineContract`."""

    def test_traps_that_are_blocked(self, builder: Builder, run: Runner) -> None:
        """The kernel unblocks SIGTRAP and forgets its handler where a step or breakpoint finds it blocked."""
        program = builder.hosted("trap_blocked", "-static", "-pthread")
        native = subprocess.run([program], capture_output=True, timeout=TIMEOUT)
        assert native.stdout.splitlines()[:3] == [b"begin 1", b"blocked 3", b"waits 1 0"]
        assert native.stdout.splitlines()[-1] == b"end 1 2"
        assert run(program).stdout == native.stdout
