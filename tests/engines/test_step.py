"""The step engine keeps the contract."""

from __future__ import annotations

from engines.blocked_traps_contract import BlockedTrapsContract
from engines.contract import EngineContract
from engines.control_contract import ControlContract
from engines.region_contract import RegionContract


class TestStep(EngineContract, BlockedTrapsContract, ControlContract, RegionContract):
    engine = "step"
    signal_period = "20000"
    few_numbered = "3"
