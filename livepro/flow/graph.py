"""The flow graph of the code that a process executed: pieces of code and where each leads.

Blocks overlap where control enters one in its middle; the graph has pieces that do not. A piece begins
where a block does, and ends before the next begins. How often it was executed is how often its
first instruction was, in whichever blocks that stands. Edges lead from a piece to the next, to its
branch's target, and from a call to where it returns to: calls and returns themselves are left out, so
that the graph falls into functions. An indirect jump may lead to any piece of its function that
nothing else leads to (a switch's cases), but for its first: a stub that jumps into a library is no
loop. Only what was executed is in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from livepro import isa
from livepro.model import Flow, ProcessResult

_RETURNS_BEHIND = (Flow.CALL, Flow.INDIRECT_CALL, Flow.BRANCH, Flow.NEXT, Flow.SYSCALL)


@dataclass(frozen=True)
class FlowGraph:
    """P pieces in order of address.

    `address` (uint64, P), `executions` (uint64, P) of all threads, `length` (int64, P) in instructions,
    `block` (int64, P) the table row of a block that begins there, `successors` for each piece the
    pieces it may lead to (ascending), `entries` the pieces at which functions are entered.
    """

    address: npt.NDArray[np.uint64]
    executions: npt.NDArray[np.uint64]
    length: npt.NDArray[np.int64]
    block: npt.NDArray[np.int64]
    successors: tuple[tuple[int, ...], ...]
    entries: tuple[int, ...]


def flow_graph(process: ProcessResult) -> FlowGraph:
    """The graph of what all threads of a process executed. Where generated code gave its place to
    other code, the code that came last counts."""
    table = process.table
    machine = isa.for_machine(process.machine)
    executions = np.zeros(len(table.form), np.uint64)
    for thread in process.threads:
        executions += thread.executions(table)
    ends = np.cumsum(table.step, dtype=np.uint64)
    within = ends - table.step  # bytes of all blocks before each instruction
    first = table.start[:-1]
    at = np.repeat(table.address - within[first], table.length) + within
    addresses, place = np.unique(at, return_inverse=True)
    counts = np.zeros(len(addresses), np.uint64)
    np.add.at(counts, place, executions)
    ran = counts > 0

    row_at = dict(zip(table.address.tolist(), range(len(table)), strict=True))
    begins = np.array(sorted(a for a in row_at if ran[np.searchsorted(addresses, a)]), np.uint64)
    rows = [row_at[a] for a in begins.tolist()]
    number = {a: n for n, a in enumerate(begins.tolist())}
    out: list[set[int]] = []
    lengths = []
    targets: set[int] = set()
    indirect: dict[tuple[str, str], list[int]] = {}
    for n, row in enumerate(rows):
        address = int(table.address[row])
        ends_at = address + int(table.size[row])
        following = int(begins[n + 1]) if n + 1 < len(begins) else 1 << 64
        sizes = table.step[table.start[row] : table.start[row + 1]].tolist()
        inside = [address + sum(sizes[:k]) for k in range(len(sizes))]
        if address < following < ends_at and following in inside:
            out.append({n + 1})
            lengths.append(inside.index(following))
            continue
        lengths.append(len(inside))
        code = machine.decode_block(table.code[row], address)
        flow, leads = code.flows[-1], set[int]()
        if flow in _RETURNS_BEHIND and ends_at in number:
            leads.add(number[ends_at])
        if code.target is not None and code.target in number:
            if flow is Flow.CALL:
                targets.add(number[code.target])
            else:
                leads.add(number[code.target])
        if flow is Flow.INDIRECT_JUMP:
            indirect.setdefault((table.module[row], table.function[row]), []).append(n)
        out.append(leads)
    reached = {target for leads in out for target in leads}
    for (module, function), jumps in indirect.items():
        own = [
            n for n, row in enumerate(rows) if (table.module[row], table.function[row]) == (module, function)
        ]
        cases = set(own[1:]) - reached if function else set()
        for jump in jumps:
            out[jump] |= cases
    reached |= {target for leads in out for target in leads}
    return FlowGraph(
        address=begins,
        executions=counts[np.searchsorted(addresses, begins)],
        length=np.array(lengths, np.int64),
        block=np.array(rows, np.int64),
        successors=tuple(tuple(sorted(leads)) for leads in out),
        entries=tuple(sorted(targets | (set(range(len(rows))) - reached))),
    )
