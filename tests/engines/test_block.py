"""The block engine keeps the contract."""

from __future__ import annotations

from typing import ClassVar

from engines.contract import EngineContract


class TestBlock(EngineContract):
    engine = "block"
    unfit: ClassVar[dict[str, str]] = {
        "self_reading": "a program that reads its own code sees the breakpoints in it"
    }
