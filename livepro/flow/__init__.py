"""The flow graph of the code that a process executed, and the natural loops in it."""

from __future__ import annotations

from livepro.flow.graph import FlowGraph, flow_graph
from livepro.flow.loops import Loop, dominators, natural_loops

__all__ = ["FlowGraph", "Loop", "dominators", "flow_graph", "natural_loops"]
