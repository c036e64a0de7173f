"""The flow graph of executed code, dominators, natural loops: by definition, and of real programs."""

from __future__ import annotations

import platform

import pytest
from engines.region_contract import fixture_of, place_of
from hypothesis import given
from hypothesis import strategies as st

import livepro
from fixtures import Builder
from livepro.flow import dominators, flow_graph, natural_loops

Graph = list[list[int]]


def reachable(successors: Graph, entries: list[int], without: int) -> set[int]:
    seen: set[int] = set()
    waiting = [e for e in entries if e != without]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [t for t in successors[node] if t != without]
    return seen


def by_definition(successors: Graph, entries: list[int], node: int) -> set[int]:
    """All without which there is no way to `node`, itself among them."""
    return {d for d in range(len(successors)) if node not in reachable(successors, entries, d)}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, list[int]]:
    size = draw(st.integers(1, 9))
    nodes = st.integers(0, size - 1)
    successors = [sorted(draw(st.sets(nodes, max_size=3))) for _ in range(size)]
    return successors, sorted(draw(st.sets(nodes, min_size=1, max_size=3)))


@given(graphs())
def test_dominators_are_those_of_the_definition(graph: tuple[Graph, list[int]]) -> None:
    successors, entries = graph
    found = dominators(successors, entries)
    alive = reachable(successors, entries, -1)
    for node in range(len(successors)):
        if node not in alive:
            assert found[node] == -2
            continue
        chain, at = set(), node
        while at >= 0:
            chain.add(at)
            at = found[at]
        assert chain == by_definition(successors, entries, node)


def test_loops_of_a_fixture(builder: Builder) -> None:
    """regions.S: `outer` calls `work` three times, in which a loop has a hundred turns each time."""
    program = builder.assembly(fixture_of("regions"))
    result = livepro.run([str(program)], cache=False)
    process = result.processes[0]
    graph = flow_graph(process)
    loops = natural_loops(graph)
    offsets = {place_of(program, name): name for name in ("turn", "within")}
    found = {
        offsets.get(f"{program.name}+{int(process.table.offset[graph.block[loop.header]]):#x}", "outer"): loop
        for loop in loops
    }
    assert {name: (loop.turns, loop.depth) for name, loop in found.items()} == {
        "turn": (300, 1),
        "outer": (3, 1),
    }
    assert found["turn"].instructions == 600  # the decrement and the branch
    assert found["outer"].instructions == 9  # without what is called
    assert int((graph.executions * graph.length.astype("uint64")).sum()) == result.instructions


@pytest.mark.skipif(platform.machine() != "x86_64", reason="gcc makes other loops elsewhere")
def test_loops_of_a_compiled_program(builder: Builder) -> None:
    """Each thread's loop in `work`; all threads' turns add up."""
    program = builder.hosted("arrivals", "-static")
    process = livepro.run([str(program), "2", "500"]).processes[0]
    graph = flow_graph(process)
    turns = [
        loop.turns
        for loop in natural_loops(graph)
        if process.table.function[graph.block[loop.header]] == "work"
    ]
    assert turns == [1000]
