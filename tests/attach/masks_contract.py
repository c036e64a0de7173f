"""What engines must do that attach and have threads trap in their own code: see `blocked_traps_contract`."""

from __future__ import annotations

from typing import ClassVar

from attach.targets import Target

import livepro
from fixtures import Builder


class MasksContract:
    """Beside `AttachContract`."""

    engine: ClassVar[str]

    def test_masks_and_a_handler_of_traps_are_kept(self, builder: Builder) -> None:
        """They were lost where a thread that blocks SIGTRAP was stepped, or let go with a trap on its way.
        Under the block engine a thread that was in a handler as others were let go ran on without
        breakpoints, uncounted."""
        with Target(builder.hosted("attach_masks", "-pthread")) as target:
            before = target.shape()
            for turn in range(40):
                seconds = 0.001 + 0.01 * (turn % 7)
                assert livepro.attach(target.pid, engine=self.engine, seconds=seconds).warnings == ()
                assert target.shape() == before
            assert target.end() == (0, "wrong 0\n", "")
