"""The step engine keeps the contract."""

from __future__ import annotations

from engines.contract import EngineContract
from engines.control_contract import ControlContract


class TestStep(EngineContract, ControlContract):
    engine = "step"
