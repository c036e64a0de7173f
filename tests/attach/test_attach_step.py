"""The step engine attaches and detaches."""

from __future__ import annotations

from attach.attach_contract import AttachContract
from attach.masks_contract import MasksContract


class TestStepAttach(AttachContract, MasksContract):
    engine = "step"
