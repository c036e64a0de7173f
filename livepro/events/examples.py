"""Four analyses of the event stream, as anybody would write them."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.events import Analysis, counting
from livepro.events.analysis import INDIRECT_CALL, INDIRECT_JUMP
from livepro.events.counting import count


class Pages(Analysis):
    """Memory accesses by page: a heat map, the hottest pages first."""

    def state(self):
        return {"loads": counting.table(), "stores": counting.table()}

    def access(state, thread, instruction, address, size, write):
        count(state.stores if write else state.loads, address >> 12)

    def merge(self, into, other):
        counting.merge(into, other)

    def result(self, state, program):
        stores, pages = dict(counting.rows(state.stores)), dict(counting.rows(state.loads))
        hot = sorted({*pages, *stores}, key=lambda page: -pages.get(page, 0) - stores.get(page, 0))
        return [{"page": f"{p << 12:#x}", "loads": pages.get(p, 0), "stores": stores.get(p, 0)} for p in hot]


class Strides(Analysis):
    """Distances from each store to the one before, by powers of two."""

    def state(self):
        return {"last": np.zeros(1, np.int64), "strides": np.zeros(65, np.int64)}

    def access(state, thread, instruction, address, size, write):
        if write:
            distance, bits = abs(address - state.last[0]), 0
            while distance >> bits:
                bits += 1
            state.strides[bits] += 1
            state.last[0] = address

    def result(self, state, program):
        return {f"< {1 << bits:,}": int(n) for bits, n in enumerate(state.strides) if n}


class Indirect(Analysis):
    """The hottest indirect branches, with their targets."""

    def state(self):
        return {"taken": counting.table()}

    def branch(state, thread, instruction, address, target, taken, kind):
        if kind in (INDIRECT_JUMP, INDIRECT_CALL):
            count(state.taken, instruction << 47 | target & (1 << 47) - 1)

    def merge(self, into, other):
        counting.merge(into, other)

    def result(self, state, program):
        rows = [(key >> 47, key & (1 << 47) - 1, n) for key, n in counting.rows(state.taken)]
        return [
            {"times": n, "from": program.label(program.address[i]), "to": program.label(t)}
            for i, t, n in rows
        ]


class Split(Analysis):
    """Accesses that cross the end of a cache line, and all."""

    def __init__(self, line: int = 64):
        self.line = line

    def state(self):
        return {
            "line": np.array([self.line]),
            "crossing": np.zeros(2, np.int64),
            "all": np.zeros(2, np.int64),
        }

    def access(state, thread, instruction, address, size, write):
        kind = 1 if write else 0
        state.all[kind] += 1
        state.crossing[kind] += address // state.line[0] != (address + size - 1) // state.line[0]

    def merge(self, into, other):
        into.crossing += other.crossing
        into.all += other.all

    def result(self, state, program):
        return {
            name: {"loads": int(n[0]), "stores": int(n[1])}
            for name, n in (("crossing", state.crossing), ("all", state.all))
        }
