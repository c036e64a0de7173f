"""Natural loops: an edge back to a piece that dominates where it comes from closes one.

Dominators by K. Cooper, T. Harvey, K. Kennedy, "A simple, fast dominance algorithm" (2001); natural
loops as in Aho, Lam, Sethi, Ullman, "Compilers", 9.6.6. Loops with the same header are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from livepro.flow.graph import FlowGraph


class Loop(NamedTuple):
    """A natural loop. `header` and `body` (the header with it, ascending) are pieces of the graph;
    `depth` is 1 for an outermost one. `turns` is how often the header was executed, `instructions`
    what was executed in the body."""

    header: int
    body: tuple[int, ...]
    depth: int
    turns: int
    instructions: int


def dominators(successors: Sequence[Sequence[int]], entries: Sequence[int]) -> list[int]:
    """The immediate dominator of each node; -1 for one whose only dominator is itself (an entry, or one
    that ways from several entries lead to), -2 for one that no entry leads to."""
    root = len(successors)
    order = _postorder([*map(tuple, successors), tuple(entries)], root)
    rank = {node: n for n, node in enumerate(order)}
    before: list[list[int]] = [[] for _ in range(root + 1)]
    for node in (*range(root), root):
        for target in successors[node] if node < root else entries:
            if node in rank:
                before[target].append(node)
    found: dict[int, int] = {root: root}
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            known = [b for b in before[node] if b in found]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    while rank[new] < rank[other]:
                        new = found[new]
                    while rank[other] < rank[new]:
                        other = found[other]
            if found.get(node) != new:
                found[node] = new
                changed = True
    return [-2 if n not in found else -1 if found[n] == root else found[n] for n in range(root)]


def natural_loops(graph: FlowGraph) -> list[Loop]:
    """The loops of a graph, those in which most was executed first."""
    above = dominators(graph.successors, graph.entries)
    before: list[list[int]] = [[] for _ in graph.successors]
    for node, leads in enumerate(graph.successors):
        for target in leads:
            before[target].append(node)
    bodies: dict[int, set[int]] = {}
    for node, leads in enumerate(graph.successors):
        for header in leads:
            if _dominates(above, header, node):
                body = bodies.setdefault(header, {header})
                _collect(body, node, before)
    found = []
    for header, body in bodies.items():
        depth = sum(header in other for other in bodies.values())
        pieces = tuple(sorted(body))
        executed = sum(int(graph.executions[n]) * int(graph.length[n]) for n in pieces)
        found.append(Loop(header, pieces, depth, int(graph.executions[header]), executed))
    return sorted(found, key=lambda loop: (-loop.instructions, loop.header))


def _dominates(above: Sequence[int], one: int, other: int) -> bool:
    while other >= 0:
        if other == one:
            return True
        other = above[other]
    return False


def _collect(body: set[int], node: int, before: Sequence[Sequence[int]]) -> None:
    """Add what leads to `node` without passing what is in the body already."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node not in body:
            body.add(node)
            waiting += before[node]


def _postorder(successors: Sequence[Sequence[int]], root: int) -> list[int]:
    """What the root leads to, each behind all that it leads to for the first time; the root last."""
    seen, out = {root}, []
    stack = [(root, iter(successors[root]))]
    while stack:
        node, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors[target])))
                break
        else:
            stack.pop()
            out.append(node)
    return out
