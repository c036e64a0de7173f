"""Which blocks of a function are in an innermost loop.

A loop is a strongly connected part of the flow graph (R. Tarjan, "Depth-first search and
linear graph algorithms", 1972), and what remains strongly connected in it without the
block that it is entered by is a loop within (as in P. Havlak, "Nesting of reducible and
irreducible loops", 1997): a loop without one is innermost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from livepro.blocks.split import JUMPS, StaticBlock
from livepro.model import Flow

Graph = list[list[int]]

_GOES_ON = (Flow.NEXT, Flow.SYSCALL, Flow.BRANCH, Flow.CALL, Flow.INDIRECT_CALL)
"""Control flow that (also) leads to the instruction behind."""


def innermost(blocks: Sequence[StaticBlock]) -> frozenset[int]:
    """The addresses of the blocks that are in an innermost loop of a function with these blocks
    (ascending), as far as direct control flow tells: calls return, and what an indirect jump leads
    to is not known."""
    graph = successors(blocks)
    found: set[int] = set()
    waiting = _loops(graph, range(len(blocks)))
    while waiting:
        loop = waiting.pop()
        entry = _entry(graph, loop)
        within = _loops(graph, [node for node in loop if node != entry])
        if within:
            waiting += within
        else:
            found.update(blocks[node].start for node in loop)
    return frozenset(found)


def successors(blocks: Sequence[StaticBlock]) -> Graph:
    """For each block the places of those that control may go to from it."""
    place = {block.start: i for i, block in enumerate(blocks)}
    out: Graph = []
    for block in blocks:
        targets = set()
        if block.flow in JUMPS and block.target is not None:
            targets.add(block.target)
        if block.flow in _GOES_ON:
            targets.add(block.end)
        out.append(sorted(place[t] for t in targets if t in place))
    return out


def _entry(graph: Graph, loop: Sequence[int]) -> int:
    """The block by which control comes in: the first, in address order, that has a predecessor outside
    or, where none has (only an indirect jump leads there), the first of all."""
    inside = set(loop)
    entered = {t for node, targets in enumerate(graph) if node not in inside for t in targets if t in inside}
    return min(entered or inside)


def _loops(graph: Graph, nodes: Collection[int]) -> list[list[int]]:
    """The strongly connected parts among `nodes` that have an edge within, each sorted."""
    allowed = set(nodes)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    out: list[list[int]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in allowed:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = [stack.pop()]
                    while part[-1] != node:
                        part.append(stack.pop())
                    on_stack.difference_update(part)
                    if len(part) > 1 or node in graph[node]:
                        out.append(sorted(part))
    return out
