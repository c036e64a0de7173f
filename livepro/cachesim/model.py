"""Cachegrind's model of caches and branch predictors, as an analysis of the event stream.

After the description in its manual and the notes in its sources (cachegrind/cg_sim.c,
cg_branchpred.c): two first-level caches and a last-level one that sees their misses, LRU, lines are
allocated on writes; an access that crosses lines is one access, and one miss if either misses.
Conditional branches are predicted by 2-bit counters, indexed by 7 bits of the branch's address and the
outcomes of the last 7; indirect ones by a table of last targets with 512 entries; returns are not
predicted. Instructions that modify memory count as reads. Threads share everything, chunk by chunk of
their streams.
"""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import njit

from livepro.cachesim.geometry import Geometry, check, host, parse
from livepro.events import Analysis, Program
from livepro.events.analysis import CONDITIONAL, INDIRECT_CALL, INDIRECT_JUMP

CACHE_EVENTS = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
BRANCH_EVENTS = ("Bc", "Bcm", "Bi", "Bim")
EVENTS = (*CACHE_EVENTS, *BRANCH_EVENTS)

_HISTORY, _COUNTERS, _TARGETS = 7, 1 << 14, 512
_I1, _D1, _LL = 0, 3, 6
"""Where the shape of each cache is. (A row of an array would be an array, whose references are counted.)"""


@njit(nogil=True)
def set_misses(tags, at, ways, line):
    """Whether `line` is not among the `ways` lines from `at` on; it is then, as the most recent."""
    if tags[at] == line:
        return False
    for way in range(1, ways):
        if tags[at + way] == line:
            for n in range(way, 0, -1):
                tags[at + n] = tags[at + n - 1]
            tags[at] = line
            return False
    for n in range(ways - 1, 0, -1):
        tags[at + n] = tags[at + n - 1]
    tags[at] = line
    return True


@njit(nogil=True)
def misses(tags, shapes, cache, address, size):
    """Whether an access misses the `cache`-th of the `shapes`: the bits of its lines, its sets minus one, its
    ways."""
    bits, mask, ways = shapes[cache], shapes[cache + 1], shapes[cache + 2]
    first, last = address >> bits, (address + size - 1) >> bits
    out = set_misses(tags, (first & mask) * ways, ways, first)
    for line in range(first + 1, last + 1):
        if set_misses(tags, (line & mask) * ways, ways, line):
            out = True
    return out


class CacheSim(Analysis):
    """Cache misses and mispredicted branches by Cachegrind's model, by instruction, function and line"""

    name = "cachesim"
    shared = True
    grows = ("counts", "runs")

    def __init__(
        self, i1: str = "", d1: str = "", ll: str = "", caches: bool = True, branches: bool = False
    ) -> None:
        given = [
            check(parse(text, option), option) if text else None
            for text, option in ((i1, "--I1"), (d1, "--D1"), (ll, "--LL"))
        ]
        self.hierarchy = host(given)
        self.caches, self.branches = caches, branches
        self.events = tuple(e for e in EVENTS if e == "Ir" or (caches if e in CACHE_EVENTS else branches))
        """The events counted, in Cachegrind's order."""

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        shapes = self.hierarchy[:3]
        return {
            "runs": np.zeros(2, np.int64),
            "missed": np.zeros(len(EVENTS), np.int64),
            "counts": np.zeros((1, len(EVENTS)), np.int64),
            "shapes": np.array([_shape(cache) for cache in shapes], np.int64).ravel(),
            "i1": np.zeros(shapes[0].size // shapes[0].line, np.int64),
            "d1": np.zeros(shapes[1].size // shapes[1].line, np.int64),
            "ll": np.zeros(shapes[2].size // shapes[2].line, np.int64),
            "fetched": np.full(1, -1, np.int64),
            "on": np.array([self.caches, self.branches], np.int64),
            "history": np.zeros(1, np.int64),
            "counters": np.zeros(_COUNTERS, np.int8),
            "targets": np.zeros(_TARGETS, np.int64),
        }

    def block(state, thread, instruction, length):
        state.runs[instruction] += 1
        state.runs[instruction + length] -= 1

    def instruction(state, thread, instruction, address, size):
        # The line fetched from last is the most recent of its set: it hits, and changes nothing.
        bits = state.shapes[_I1]
        line = address >> bits
        end = (address + size - 1) >> bits
        if (line != state.fetched[0] or line != end) and state.on[0]:
            state.fetched[0] = end
            if misses(state.i1, state.shapes, _I1, address, size):
                state.counts[instruction, 1] += 1
                state.missed[1] += 1
                if misses(state.ll, state.shapes, _LL, address, size):
                    state.counts[instruction, 2] += 1
                    state.missed[2] += 1

    def access(state, thread, instruction, address, size, write):
        if write < 2 and state.on[0]:
            first = 6 if write else 3
            bits, mask, ways = state.shapes[_D1], state.shapes[_D1 + 1], state.shapes[_D1 + 2]
            size = min(size, 1 << bits)
            state.counts[instruction, first] += 1
            line = address >> bits
            if state.d1[(line & mask) * ways] == line and (address + size - 1) >> bits == line:
                return
            if misses(state.d1, state.shapes, _D1, address, size):
                state.counts[instruction, first + 1] += 1
                state.missed[first + 1] += 1
                if misses(state.ll, state.shapes, _LL, address, size):
                    state.counts[instruction, first + 2] += 1
                    state.missed[first + 2] += 1

    def branch(state, thread, instruction, address, target, taken, kind):
        if not state.on[1]:
            return
        if kind == CONDITIONAL:
            at = (state.history[0] & 127) << 7 | address & 127
            predicted = state.counters[at] >= 2
            state.counts[instruction, 9] += 1
            if predicted != (taken != 0):
                state.counts[instruction, 10] += 1
                state.missed[10] += 1
            state.history[0] = (state.history[0] << 1 | taken) & 127
            if taken:
                state.counters[at] = min(state.counters[at] + 1, 3)
            else:
                state.counters[at] = max(state.counters[at] - 1, 0)
        elif kind in (INDIRECT_JUMP, INDIRECT_CALL):
            at = address & 511
            state.counts[instruction, 11] += 1
            if state.targets[at] != target:
                state.counts[instruction, 12] += 1
                state.missed[12] += 1
            state.targets[at] = target

    def totals(self, state: SimpleNamespace) -> dict[str, int]:
        """The misses and mispredictions so far, by event."""
        found = zip(EVENTS, state.missed.tolist(), strict=True)
        return {event: n for event, n in found if event in self.events and "m" in event}

    def merge(self, into: SimpleNamespace, other: SimpleNamespace) -> None:
        into.counts += other.counts
        into.runs += other.runs
        into.missed += other.missed

    def table(self, state: SimpleNamespace, instructions: int) -> np.ndarray[Any, Any]:
        """The counts of each instruction by event (int64)."""
        counts = state.counts[:instructions].copy()
        counts[:, 0] = np.cumsum(state.runs)[:instructions]
        return counts[:, [EVENTS.index(event) for event in self.events]]

    def result(self, state: SimpleNamespace, program: Program) -> dict[str, Any]:
        table = self.table(state, len(program.address))
        used = np.flatnonzero(table.any(axis=1))
        lines: dict[tuple[str, str, int], np.ndarray[Any, Any]] = {}
        functions: dict[tuple[str, str], np.ndarray[Any, Any]] = {}
        for (function, module, file, line), counts in zip(program.lines(used), table[used], strict=True):
            for counted, key in ((lines, (file, function, line)), (functions, (function, module))):
                if key in counted:
                    counted[key] += counts
                else:
                    counted[key] = counts.copy()
        by_function = sorted(functions.items(), key=lambda item: (-int(item[1][0]), item[0]))
        caches = {name: str(c) for name, c in zip(("I1", "D1", "LL"), self.hierarchy[:3], strict=True)}
        return {
            "events": list(self.events),
            "caches": caches if self.caches else {},
            "notes": list(self.hierarchy.notes) if self.caches else [],
            "totals": dict(zip(self.events, table.sum(axis=0).tolist(), strict=True)),
            "functions": [[name, module, *n.tolist()] for (name, module), n in by_function],
            "lines": [[*key, *n.tolist()] for key, n in sorted(lines.items())],
        }

    def frames(self, result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Events by function, and in ``.lines`` by source line."""
        events = result["events"]
        return {
            "": [
                {"function": name, "module": module, **dict(zip(events, counts, strict=True))}
                for name, module, *counts in result["functions"]
            ],
            ".lines": [
                {"file": file, "function": name, "line": line, **dict(zip(events, counts, strict=True))}
                for file, name, line, *counts in result["lines"]
            ],
        }

    def report(self, result: dict[str, Any]) -> Iterator[str]:
        totals, instructions = result["totals"], max(result["totals"]["Ir"], 1)
        for name, shape in result["caches"].items():
            yield f"{name} cache  {shape}"
        yield from result["notes"]
        yield f"{'Ir':<6}{totals['Ir']:>18,}"
        for event, of in (
            *(("I1mr", "Ir"), ("ILmr", "Ir"), ("Dr", ""), ("D1mr", "Dr"), ("DLmr", "Dr"), ("Dw", "")),
            *(("D1mw", "Dw"), ("DLmw", "Dw"), ("Bc", ""), ("Bcm", "Bc"), ("Bi", ""), ("Bim", "Bi")),
        ):
            if event in totals:
                share = f"  {totals[event] / max(totals[of], 1):7.2%} of {of}" if of else " " * 16
                each = 1000 * totals[event] / instructions
                yield f"{event:<6}{totals[event]:>18,}{share}  {each:9.3f} per 1,000 instructions"
        yield ""
        shown = [e for e in ("Ir", "I1mr", "D1mr", "DLmr", "D1mw", "DLmw", "Bcm", "Bim") if e in totals]
        yield "".join(f"{event:>14}" for event in shown) + "  function"
        at = [result["events"].index(event) for event in shown]
        for name, module, *counts in result["functions"][:10]:
            yield "".join(f"{counts[n]:>14,}" for n in at) + f"  {name or module or '?'}"


def _shape(cache: Geometry) -> tuple[int, int, int]:
    return cache.line.bit_length() - 1, cache.sets - 1, cache.ways
