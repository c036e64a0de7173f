"""The step engine attaches and detaches."""

from __future__ import annotations

from attach.attach_contract import AttachContract


class TestStepAttach(AttachContract):
    engine = "step"
