"""The block engine keeps the contract."""

from __future__ import annotations

from engines.contract import EngineContract


class TestBlock(EngineContract):
    engine = "block"
