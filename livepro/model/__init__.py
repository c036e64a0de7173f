"""The data that every part of livepro speaks: frozen, and knowing nothing else.

An engine's whole product is a table of basic blocks and, per thread, how often
each block ran; everything that livepro reports is computed from these classes.
"""

from livepro.model.blocks import BasicBlock, BlockTable
from livepro.model.counts import Interval, ThreadCounts
from livepro.model.instruction import Flow, Instruction, SimdFacts, SimdType
from livepro.model.label import CodeLabel, Origin
from livepro.model.result import ProcessResult, RegionResult, RunResult, Snapshot, SnapshotThread
from livepro.model.sampling import SamplingResult, Window

__all__ = [
    "BasicBlock",
    "BlockTable",
    "CodeLabel",
    "Flow",
    "Instruction",
    "Interval",
    "Origin",
    "ProcessResult",
    "RegionResult",
    "RunResult",
    "SamplingResult",
    "SimdFacts",
    "SimdType",
    "Snapshot",
    "SnapshotThread",
    "ThreadCounts",
    "Window",
]
