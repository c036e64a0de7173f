"""The translate engine keeps the contract."""

from __future__ import annotations

from engines.contract import EngineContract


class TestTranslate(EngineContract):
    engine = "translate"
    heavy = True
