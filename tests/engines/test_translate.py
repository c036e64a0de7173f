"""The translate engine keeps the contract."""

from __future__ import annotations

from typing import ClassVar

from engines.contract import EngineContract


class TestTranslate(EngineContract):
    engine = "translate"
    heavy = True
    deviations: ClassVar[dict[str, int]] = {
        # A return to an address that is not canonical faults on the processor before it
        # retires. Translated, the address has been popped when that shows, and nothing
        # tells which return it was: the fault is raised at the target, one return counted.
        "signal_segv": 1,
    }
