"""The step engine keeps the contract."""

from __future__ import annotations

from engines.contract import EngineContract


class TestStep(EngineContract):
    engine = "step"
