"""The translate engine attaches and detaches."""

from __future__ import annotations

from attach.attach_contract import AttachContract
from attach.observe_attach import observe
from attach.targets import Target

from fixtures import Builder


class TestTranslateAttach(AttachContract):
    engine = "translate"

    def test_handlers_are_changed_meanwhile(self, builder: Builder) -> None:
        """The kernel knows handlers by places in livepro's memory: not when anybody is out of it."""
        with Target(builder.hosted("attach_actions")) as target:
            before = target.shape()
            for _ in range(4):
                seen = observe(target.pid, engine=self.engine, seconds=0.1)
                assert seen["warnings"] == []
                assert target.shape() == before
            assert target.end() == (0, "wrong 0\n", "")
