"""The event stream for everybody: analyses of what a program accesses and how it branches.

A subclass of `Analysis` with a state of NumPy arrays and one plain function is all it takes:

    import numpy as np
    from livepro.events import Analysis

    class Pages(Analysis):
        "Accesses by page"
        def state(self):
            return {"count": np.zeros(1 << 20, np.int64)}
        def access(state, thread, instruction, address, size, write):
            state.count[(address >> 12) & 0xFFFFF] += 1

`livepro run --analysis pages.py:Pages -- PROGRAM` compiles the function and runs it beside the program.
"""

from __future__ import annotations

from livepro.events.analysis import Analysis
from livepro.events.program import Program

__all__ = ["Analysis", "Program"]
